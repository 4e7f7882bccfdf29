// SPDX-License-Identifier: MIT
// What a runtime says of its own heap, second by second.
#ifndef CS_COUNTERS_H
#define CS_COUNTERS_H

#include "base/base.h"

// Each of them is what the runtime has said, or there is no such number.
struct cs_counters {
  bool known;
  double alloc_bytes_per_s;
  double gc_pause;        // share of the last interval in which a collection held the program
  uint64_t gc_counts[3];  // collections of each generation, since they are counted
  double heap_bytes;
  char why[160];  // not known: why, if there is a reason other than that none have come yet
};

#endif
