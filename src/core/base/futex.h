// SPDX-License-Identifier: MIT
// Waiting for a word of this process to change. Any thread. Signal-safe: no (it sets errno).
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

// Wakes all threads that wait for `word`.
static inline void cs_futex_wake(uint32_t *word) {
  (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

// Returns once woken, at `until_ns` (CLOCK_MONOTONIC), at once if `word` is not `seen` any more, or
// spuriously.
static inline void cs_futex_wait_until(uint32_t *word, uint32_t seen, uint64_t until_ns) {
  struct timespec at = cs_timespec_of(until_ns);
  (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen, &at, NULL,
                FUTEX_BITSET_MATCH_ANY);
}
