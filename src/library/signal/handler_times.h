// SPDX-License-Identifier: MIT
// handler_times: notes of how long handlers take, with a sample and with an empty handler, at the
// same instants. Only for the benchmark (bench/real.py), in which every other signal, at random,
// has an empty handler. Signal-safe: yes; loads, stores and an addition.
#pragma once

#include "signal/thread.h"

enum { CS_HANDLER_TIMES = 1 << 17 };

struct cs_handler_time {
  uint64_t overflow_ns;  // CLOCK_MONOTONIC_RAW, when the event interrupted user mode; 0: not known
  uint64_t entry, end;   // of the handler, by the time-stamp counter. `end` 0: not written yet
  uint32_t empty;        // 1: the handler did nothing
  uint32_t clocked;      // 1: the event's signal; else the thread was asked
};
struct cs_handler_times {
  uint32_t used;  // more than CS_HANDLER_TIMES once they are full
  struct cs_handler_time at[CS_HANDLER_TIMES];
};

// Begins the note of a signal to the thread. If the note is `empty`, it is complete, and the
// handler must do nothing. Returns NULL if there is no room or the thread is in its cooldown.
CS_ISLAND struct cs_handler_time *cs_handler_time_begin(struct cs_handler_times *notes,
                                                        const struct cs_thread *thread,
                                                        uint64_t entry_tsc, bool clocked);
// Returns when the calling thread's event last interrupted user mode, or 0 if that is not known.
CS_ISLAND uint64_t cs_handler_time_overflow_ns(const struct cs_thread *thread);
