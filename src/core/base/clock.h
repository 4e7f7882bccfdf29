// SPDX-License-Identifier: MIT
// Time. A handler reads only the time-stamp counter (cs_tsc in base.h); this turns its values into
// CLOCK_MONOTONIC nanoseconds afterwards. Not for handlers, except where said.
#ifndef CS_BASE_CLOCK_H
#define CS_BASE_CLOCK_H

#include "base/base.h"

// Measures the counter's rate against CLOCK_MONOTONIC; sleeps about 5 ms. Once a process is enough,
// further calls return at once. Call it before the first conversion.
void cs_clock_init(void);
// Measures again over all the time since cs_clock_init: for recordings of minutes, at most once a
// second, from one thread. Conversions of other threads may run meanwhile.
void cs_clock_refine(void);
// The CLOCK_MONOTONIC time at which the counter had this value.
uint64_t cs_clock_tsc_to_ns(uint64_t tsc);
// The length of a span of counter ticks. Plain arithmetic: signal-safe.
uint64_t cs_clock_ticks_to_ns(uint64_t ticks);
uint64_t cs_clock_now_ns(void);  // CLOCK_MONOTONIC

#endif
