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

// Waits until woken, or until `until_ns` (CLOCK_MONOTONIC). Returns at once if *word is not
// `expected`, and may return spuriously.
static inline void cs_futex_wait_until(uint32_t *word, uint32_t expected, uint64_t until_ns) {
  struct timespec at = cs_timespec_of(until_ns);
  (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, &at, NULL,
                FUTEX_BITSET_MATCH_ANY);
}
