// SPDX-License-Identifier: MIT
// The runtime's counters of its heap and its thread pool, once per second: those of the event
// source System.Runtime, read through an EventPipe session on the diagnostics port.
#pragma once

#include <sys/types.h>

#include "base/base.h"

struct cs_counters {
  bool known;  // those of the heap have arrived; gc_pause may not have
  double alloc_bytes_per_s;
  // The share of the last second in which collections paused the program; < 0: unknown.
  double gc_pause;
  uint64_t gc_counts[3];  // collections of each generation since the session began
  double heap_bytes;
  bool pool_known;  // the pool's counters have arrived
  uint64_t pool_queued;
  uint32_t pool_threads;
  double pool_completed_per_s;
  unsigned pool_late_s;  // for so many seconds in a row, more items were queued at the beginning of
                         // a second than completed in it, and some were at its end
  char why[160];         // why they are not known; "": they have not arrived yet
};

struct cs_counter_reader;
// Opens the session on a thread of its own. Returns NULL if memory has run out.
struct cs_counter_reader *cs_counters_open(pid_t pid);
void cs_counters_get(struct cs_counter_reader *reader, struct cs_counters *out);
// Does not block. The runtime ends the session when it finds the connection closed.
void cs_counters_close(struct cs_counter_reader *reader);
