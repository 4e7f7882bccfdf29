// SPDX-License-Identifier: MIT
// Patterns of known stacks (tests/apps/Proofs/Known.cs describes them).
#ifndef ORACLE_PATTERN_H
#define ORACLE_PATTERN_H

#include "stack.h"

// Returns true if the stack matches. Sets `*exact_leaf` if the first frame is the pattern's first
// name, with nothing above it. A "~" in front is implied: an interrupted thread may be in a helper.
bool pattern_match(const char *pattern, const struct stack *stack, bool *exact_leaf);

#endif
