// SPDX-License-Identifier: MIT
// What a runtime says of its own heap, second by second: the counters of System.Runtime, by an
// EventPipe session over the diagnostics port.
#ifndef CS_PROCESS_COUNTERS_H
#define CS_PROCESS_COUNTERS_H

#include <sys/types.h>

#include "base/base.h"

// Each of them is what the runtime has said, or there is no such number.
struct cs_counters {
  bool known;
  double alloc_bytes_per_s;
  double gc_pause;        // share of the last second in which a collection held the program; < 0: -
  uint64_t gc_counts[3];  // collections of each generation, since they are counted
  double heap_bytes;
  char why[160];  // not known: why, if there is a reason other than that none have come yet
};

struct cs_counter_reader;
// Asks the process for them, from a thread of its own. NULL: no memory.
struct cs_counter_reader *cs_counters_open(pid_t pid);
void cs_counters_get(struct cs_counter_reader *reader, struct cs_counters *out);
// Never waits. The runtime ends the session when it finds the connection closed.
void cs_counters_close(struct cs_counter_reader *reader);

#endif
