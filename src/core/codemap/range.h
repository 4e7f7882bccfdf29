// SPDX-License-Identifier: MIT
// The runtime's range-section map: which part of the runtime owns an address. Signal-safe: yes.
#pragma once

#include "codemap/codemap.h"
#include "codemap/reader.h"

struct cs_range {
  uint64_t begin, end;  // the range section
  uint64_t r2r_module;  // Module* of a ReadyToRun image, else 0
  uint64_t heap;        // CodeHeapListNode* of a code heap, else 0
  uint32_t flags;       // CS_RANGE_*
  bool found;
  struct cs_reader reader;  // for everything in this range
};

// Fills in `range`; range->found is false if no section contains `ip`. `near` may be NULL.
CS_ISLAND enum cs_stop cs_range_find(const struct cs_world *world, uint64_t ip,
                                     struct cs_near *near, struct cs_range *range);
