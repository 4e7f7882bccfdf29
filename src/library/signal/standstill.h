// SPDX-License-Identifier: MIT
// standstill: for how long samples hold threads up, and for how long an empty handler would at the
// same instants. For the benchmark (bench/real.py) alone: every other signal, at random, then has an
// empty handler. Signal-safe: yes; loads, stores and an addition.
#ifndef CS_SIGNAL_STANDSTILL_H
#define CS_SIGNAL_STANDSTILL_H

#include "signal/thread.h"

enum { CS_STANDSTILLS = 1 << 17 };

struct cs_standstill {
  // CLOCK_MONOTONIC_RAW, when the perf event interrupted user mode; 0: not known
  uint64_t overflow_ns;
  uint64_t entry, end;  // of the handler, by the time-stamp counter. `end` 0: not written yet
  uint32_t empty;       // 1: the handler did nothing
  uint32_t clocked;     // 1: the event's signal; else the thread was asked
};
struct cs_standstills {
  uint32_t used;  // may be more than there are
  struct cs_standstill at[CS_STANDSTILLS];
};

// Begins a note of a signal that has come for the thread. If it is `empty`, the note is complete,
// and the handler is to do nothing. NULL: there is no room, or the thread is at rest.
CS_ISLAND struct cs_standstill *cs_standstill_begin(struct cs_standstills *notes,
                                                    const struct cs_thread *thread,
                                                    uint64_t entry_tsc, bool clocked);
// When the calling thread's event last interrupted user mode; 0: not known
CS_ISLAND uint64_t cs_standstill_overflow_ns(const struct cs_thread *thread);

#endif
