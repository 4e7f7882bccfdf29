// SPDX-License-Identifier: MIT
// bounds: the calling thread's stack and alternate stack, for handlers. Async-signal-safe.
#pragma once

#include "signal/thread.h"

// Finds the mapping that holds the sp. Returns false if there is none.
bool cs_stack_by_maps(uint64_t sp, struct cs_stack *stack);
void cs_altstack_of_self(struct cs_stack *stack);  // sets alt_lo and alt_hi; 0 and 0: none
