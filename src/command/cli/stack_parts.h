// SPDX-License-Identifier: MIT
// Parts of the output of `clrsnap stack` that have files of their own. One thread.
#ifndef CS_CLI_STACK_PARTS_H
#define CS_CLI_STACK_PARTS_H

#include "stack/outside.h"
#include "util/json.h"

// The thread pool (stack_pool.c), as text and as a member of the JSON object.
void cs_stack_print_pool(const struct cs_outside_pool *pool);
void cs_stack_put_pool(struct cs_json_writer *j, const struct cs_outside_pool *pool);

#endif
