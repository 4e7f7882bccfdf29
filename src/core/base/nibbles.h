// SPDX-License-Identifier: MIT
// Numbers in half bytes, as the runtime packs a method's debug info: the lower half of a byte
// first. Any thread. Signal-safe: yes.
#ifndef CS_BASE_NIBBLES_H
#define CS_BASE_NIBBLES_H

#include "base/base.h"

struct cs_nibbles {
  const uint8_t *bytes;
  size_t size;  // bytes
  size_t next;  // nibble
};

// False: there are no more.
static inline bool cs_nibble(struct cs_nibbles *n, uint32_t *out) {
  if (n->next / 2 >= n->size) return false;
  *out = n->bytes[n->next / 2] >> (n->next % 2 * 4) & 0xFu;
  n->next++;
  return true;
}

// Three bits in each, the highest ones first; the fourth says that there are more. False: it does
// not end, or is larger than 32 bits.
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

#endif
