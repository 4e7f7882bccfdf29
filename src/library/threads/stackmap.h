// SPDX-License-Identifier: MIT
// stackmap: the bounds of a stack, by the C library or by the process' mappings. Not for handlers.
#pragma once

#include "signal/thread.h"

// Gets the calling thread's stack, [lo, hi). Returns false if that fails.
bool cs_stack_of_self(struct cs_stack *stack);
// Gets the mapping that holds `addr`, as a stack. Returns false if there is none.
bool cs_stack_around(uint64_t addr, struct cs_stack *stack);
// The same for many at once: all mappings that can hold stacks, as they are now.
struct cs_stack_maps {
  struct cs_stack *stacks;
  uint32_t count;
};
void cs_stack_maps_read(struct cs_stack_maps *all);
bool cs_stack_maps_find(const struct cs_stack_maps *all, uint64_t addr, struct cs_stack *stack);
void cs_stack_maps_free(struct cs_stack_maps *all);
