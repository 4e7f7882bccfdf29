// SPDX-License-Identifier: MIT
// Patterns of known stacks (tests/apps/Proofs/Known.cs describes them).
#ifndef ORACLE_PATTERN_H
#define ORACLE_PATTERN_H

#include "stack.h"

// True when the stack matches. `*exact_leaf`: its first frame is the pattern's first name, with
// nothing above it. "~" is implied in front: an interrupted thread may be in a helper.
bool pattern_match(const char *pattern, const struct stack *stack, bool *exact_leaf);

#endif
