// SPDX-License-Identifier: MIT
// The project's one hash of a word and of bytes. Signal-safe: yes.
#ifndef CS_BASE_HASH_H
#define CS_BASE_HASH_H

#include "base/base.h"

// `bits` bits (1 to 64) in which neighbouring keys differ: the high ones of a product with the
// golden ratio.
CS_ISLAND static inline uint64_t cs_hash_word(uint64_t key, unsigned bits) {
  return key * 0x9E3779B97F4A7C15ull >> (64 - bits);
}

// FNV-1a.
CS_ISLAND static inline uint64_t cs_hash_bytes(const char *data, size_t len) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (size_t i = 0; i < len; i++) hash = (hash ^ (uint8_t)data[i]) * 0x100000001B3ull;
  return hash;
}

#endif
