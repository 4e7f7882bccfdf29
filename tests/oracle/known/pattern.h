// SPDX-License-Identifier: MIT
// Patterns of known stacks (tests/apps/Proofs/Known.cs describes them).
#pragma once

#include "stack.h"

// Returns true if the stack matches. Sets `*exact_leaf` if the first frame is the pattern's first
// name, with nothing above it. A "~" in front is implied: an interrupted thread may be in a helper.
bool pattern_match(const char *pattern, const struct stack *stack, bool *exact_leaf);
