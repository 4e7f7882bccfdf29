// SPDX-License-Identifier: MIT
// Prefetches what a walk will probably read. Signal-safe: yes.
#pragma once

#include "unwind/unwind.h"

// Follows the chain of frame pointers from `fp`, which may be something else, for some frames, and
// prefetches the call sites and code headers of what may be return addresses. The cache misses
// overlap, while those of the walk itself follow each other. Sets near->prefetched: the next call
// is useful from that stack address on. `fp` must not be below the walk's sp if it is on the stack.
CS_ISLAND void cs_prefetch_ahead(const struct cs_world *world, struct cs_near *near,
                                 const struct cs_stack *stack, uint64_t fp);
