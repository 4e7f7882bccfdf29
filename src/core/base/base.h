// SPDX-License-Identifier: MIT
// base: what every component may use. Header only, without state. Signal-safe: yes.
//
// Terms that occur everywhere (docs/glossary.md has all of them):
//   ip       the address of an instruction
//   sp       the stack pointer
//   cfa      the value that sp had in the caller just before its call instruction
//   frame    one activation of a function on a stack; physical unless stated otherwise
//   run      consecutive unmanaged frames, which DoStackSnapshot reports as one callback
//   seed     registers, other than the thread's own, from which a walk starts
//   capture  the target records its frames and runs on
//   hold     the target waits in its signal handler until it is released
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

// Marks a function that may run in a signal handler. All functions so marked are linked into the
// island's archive, which has no undefined symbols of other libraries (tests/check-island.sh).
#define CS_ISLAND

#define CS_LIKELY(x) __builtin_expect(!!(x), 1)
#define CS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CS_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CS_POOL_WORKER ".NET TP Worker"  // the runtime's name for a worker of the thread pool

// Shorthands for atomics that show the memory order of each shared access where it happens.
#define cs_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define cs_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define cs_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define cs_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define cs_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define cs_add_seq(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define cs_or_seq(p, v) __atomic_fetch_or((p), (v), __ATOMIC_SEQ_CST)
#define cs_take_seq(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
// Strong compare-and-swap. On failure *expected receives the current value.
#define cs_cas(p, expected, desired) \
  __atomic_compare_exchange_n((p), (expected), (desired), false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)

// Makes a system call with four arguments, as cs_syscall6 (base/cpu.h) does.
static inline long cs_syscall4(long n, long a, long b, long c, long d) {
  return cs_syscall6(n, a, b, c, d, 0, 0);
}

// Returns the calling thread's CPU time in nanoseconds. Takes one system call, 0.4 us.
static inline uint64_t cs_thread_cpu_ns(void) {
  enum { THREAD_CPUTIME = 3 };  // the island does not include <time.h>
  struct {
    int64_t s, ns;
  } t = {0, 0};
  (void)cs_syscall4(CS_SYS_CLOCK_GETTIME, THREAD_CPUTIME, (long)(uintptr_t)&t, 0, 0);
  return (uint64_t)t.s * 1000000000u + (uint64_t)t.ns;
}
// Returns number * rate, where `rate` is a fixed-point number with 32 fractional bits.
static inline uint64_t cs_scale(uint64_t number, uint64_t rate) {
  return (uint64_t)(((unsigned __int128)number * rate) >> 32);
}
