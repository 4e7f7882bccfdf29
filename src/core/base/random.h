// SPDX-License-Identifier: MIT
// Random numbers (xorshift64), for choosing moments and alternatives. The caller keeps the state,
// which must not be 0. Signal-safe: yes.
#pragma once

#include "base/base.h"

CS_ISLAND static inline uint64_t cs_random_next(uint64_t *state) {
  uint64_t x = *state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}
