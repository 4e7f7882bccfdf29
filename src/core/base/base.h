// SPDX-License-Identifier: MIT
// base: what every room may use. Signal-safe: yes (header only, no calls, no state).
//
// Glossary (docs/glossary.md has the long form)
//   pc     an instruction's address; `ip` where the profiling API says so
//   sp     stack pointer; cfa: the sp that a function's caller had just before its call
//   frame  one activation of a function on a stack; physical unless said otherwise
//   run    consecutive unmanaged frames, reported as one callback by DoStackSnapshot
//   seed   registers from which a walk starts, when they are not the thread's own
//   capture  the target writes its frames and runs on; hold: it waits until it is released
#ifndef CS_BASE_BASE_H
#define CS_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Marks a function that may run in a signal handler. Everything so marked lives in the island's
// archive, whose undefined symbols are none but its own (tests/check-island.sh).
#define CS_ISLAND

#define CS_LIKELY(x) __builtin_expect(!!(x), 1)
#define CS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CS_COUNT(a) (sizeof(a) / sizeof((a)[0]))

// Atomics by name, so that the order of every shared access can be read where it happens.
#define cs_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define cs_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define cs_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define cs_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define cs_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define cs_add_seq(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define cs_or_seq(p, v) __atomic_fetch_or((p), (v), __ATOMIC_SEQ_CST)
#define cs_take_seq(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
// Strong compare-and-swap; *expected is overwritten with what was there when it fails.
#define cs_cas(p, expected, desired) \
  __atomic_compare_exchange_n((p), (expected), (desired), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

// Raw system calls: no errno, no libc. Each returns the kernel's answer, -errno on failure.
static inline long cs_syscall6(long n, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long ret;
  __asm__ volatile("syscall"
                   : "=a"(ret)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return ret;
}
static inline long cs_syscall4(long n, long a, long b, long c, long d) {
  return cs_syscall6(n, a, b, c, d, 0, 0);
}

// The time-stamp counter: the clock that a handler reads.
// Converted to nanoseconds outside of it; see base/clock.h.
static inline uint64_t cs_tsc(void) {
  uint32_t lo, hi;
  __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
  return ((uint64_t)hi << 32) | lo;
}

// The calling thread's CPU clock, in nanoseconds: a system call of 0.4 us.
static inline uint64_t cs_thread_cpu_ns(void) {
  enum { CLOCK_GETTIME = 228, THREAD_CPUTIME = 3 };  // <time.h> is no header for the island
  struct {
    int64_t s, ns;
  } t = {0, 0};
  (void)cs_syscall4(CLOCK_GETTIME, THREAD_CPUTIME, (long)(uintptr_t)&t, 0, 0);
  return (uint64_t)t.s * 1000000000u + (uint64_t)t.ns;
}
// A number times a rate of 32.32 bits.
static inline uint64_t cs_scale(uint64_t number, uint64_t rate) {
  return (uint64_t)(((unsigned __int128)number * rate) >> 32);
}

#endif
