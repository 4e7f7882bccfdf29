// SPDX-License-Identifier: MIT
// Random numbers for moments and choices: xorshift64, with a state of the caller's that is not 0.
// Signal-safe: yes.
#ifndef CS_BASE_RANDOM_H
#define CS_BASE_RANDOM_H

#include "base/base.h"

CS_ISLAND static inline uint64_t cs_random_next(uint64_t *state) {
  uint64_t x = *state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}

#endif
