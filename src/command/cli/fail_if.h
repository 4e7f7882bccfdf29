// SPDX-License-Identifier: MIT
// `clrsnap diff --fail-if`.
#pragma once

#include "cli/command.h"
#include "profile/condition.h"

enum { CS_EXIT_CONDITION = 3, CS_FAIL_IF_MOST = 32 };

struct cs_fail_if {
  struct cs_condition conditions[CS_FAIL_IF_MOST];
  size_t count;
};

// The option's setter; its field is a struct cs_fail_if.
bool cs_add_condition(const struct cs_option *option, void *field, const char *value,
                      struct cs_error *err);
// Checks that the conditions can be asked of numbers that are normalized so.
bool cs_fail_if_check(const struct cs_fail_if *f, enum cs_normalize normalize,
                      struct cs_error *err);
// Says for each condition what was measured. Returns the exit code: 0, CS_EXIT_CONDITION if one
// holds, CS_EXIT_FAILURE if one cannot be judged.
int cs_fail_if_exit_code(const struct cs_fail_if *f, const struct cs_diff *diffs, size_t count);
