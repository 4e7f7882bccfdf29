// SPDX-License-Identifier: MIT
// Time. A handler reads only the time-stamp counter (cs_tsc in base/cpu.h); these functions convert
// its values to CLOCK_MONOTONIC nanoseconds later. Signal-safe: only where stated.
#pragma once

#include <time.h>

#include "base/base.h"

// Measures the counter's rate against CLOCK_MONOTONIC, which takes about 5 ms of sleep. Must be
// called before the first conversion. Further calls in the process return at once.
void cs_clock_init(void);
// Measures the rate again, over the whole time since cs_clock_init, for recordings of minutes.
// Called by one thread, at most once a second. Other threads may convert at the same time.
void cs_clock_refine(void);
// Returns the CLOCK_MONOTONIC time at which the counter had the value `tsc`.
uint64_t cs_clock_tsc_to_ns(uint64_t tsc);
// Converts a number of counter ticks to nanoseconds. Signal-safe.
uint64_t cs_clock_ticks_to_ns(uint64_t ticks);
// Returns the CLOCK_MONOTONIC time.
uint64_t cs_clock_now_ns(void);
// Returns the time of a clock of clock_gettime(2), or 0 if it no longer exists (its thread has
// ended).
uint64_t cs_clock_read_ns(clockid_t clock);
// The counter and such a clock at the same instant.
struct cs_clock_pair {
  uint64_t tsc, ns;
};
// Returns the tightest of several readings, so that an interrupt between the two does no harm.
struct cs_clock_pair cs_clock_read_pair(clockid_t clock, unsigned readings);

// Returns the kernel's id of a thread's CPU clock (clock_getcpuclockid(3) does this for processes
// only): CPUCLOCK_PERTHREAD_MASK 4 | CPUCLOCK_SCHED 2.
static inline clockid_t cs_cpu_clock_of(uint32_t tid) {
  return (clockid_t)(~tid << 3 | 6u);
}
// Returns a thread's CPU time, or 0 if the thread has ended.
static inline uint64_t cs_cpu_ns_of(uint32_t tid) {
  return cs_clock_read_ns(cs_cpu_clock_of(tid));
}

static inline struct timespec cs_timespec_of(uint64_t ns) {
  return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}
static inline uint64_t cs_timespec_ns(struct timespec t) {
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
