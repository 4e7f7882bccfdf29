// SPDX-License-Identifier: MIT
// What a recording says of the thread pool, in one sentence.
#ifndef CS_PROFILE_POOL_H
#define CS_PROFILE_POOL_H

#include <stdio.h>

#include "wire/wire.h"

// Without a full stop or a newline; nothing was read if `reads` is 0, and then it is not called.
void cs_pool_put(const struct cs_wire_pool *pool, FILE *out);

#endif
