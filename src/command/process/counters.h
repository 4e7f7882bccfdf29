// SPDX-License-Identifier: MIT
// The runtime's counters of its heap, once per second: those of the event source System.Runtime,
// read through an EventPipe session on the diagnostics port.
#ifndef CS_PROCESS_COUNTERS_H
#define CS_PROCESS_COUNTERS_H

#include <sys/types.h>

#include "base/base.h"

struct cs_counters {
  bool known;  // all but gc_pause have arrived
  double alloc_bytes_per_s;
  double
      gc_pause;  // share of the last second in which collections paused the program; < 0: unknown
  uint64_t gc_counts[3];  // collections of each generation since the session began
  double heap_bytes;
  char why[160];  // why they are not known; "": they have not arrived yet
};

struct cs_counter_reader;
// Opens the session on a thread of its own. NULL: out of memory.
struct cs_counter_reader *cs_counters_open(pid_t pid);
void cs_counters_get(struct cs_counter_reader *reader, struct cs_counters *out);
// Does not block. The runtime ends the session when it finds the connection closed.
void cs_counters_close(struct cs_counter_reader *reader);

#endif
