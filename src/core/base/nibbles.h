// SPDX-License-Identifier: MIT
// A reader of nibbles, in which the runtime packs a method's debug info. The low nibble of a byte
// comes first. Any thread. Signal-safe: yes.
#pragma once

#include "base/base.h"

struct cs_nibbles {
  const uint8_t *bytes;
  size_t size;  // in bytes
  size_t next;  // index of the next nibble
};

// Returns false at the end.
static inline bool cs_nibble(struct cs_nibbles *n, uint32_t *out) {
  if (n->next / 2 >= n->size) return false;
  *out = n->bytes[n->next / 2] >> (n->next % 2 * 4) & 0xFu;
  n->next++;
  return true;
}

// Reads an unsigned number: three bits from each nibble, the most significant first; the nibble's
// high bit is set if another one follows. Returns false if the number does not end, or exceeds 32
// bits.
static inline bool cs_nibbles_u32(struct cs_nibbles *n, uint32_t *out) {
  uint64_t value = 0;
  uint32_t nibble;
  do {
    if (!cs_nibble(n, &nibble)) return false;
    value = value << 3 | (nibble & 7u);
    if (value > UINT32_MAX) return false;
  } while ((nibble & 8u) != 0);
  *out = (uint32_t)value;
  return true;
}
