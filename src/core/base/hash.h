// SPDX-License-Identifier: MIT
// The project's only hash functions. Signal-safe: yes.
#ifndef CS_BASE_HASH_H
#define CS_BASE_HASH_H

#include "base/base.h"

// Returns a hash of `bits` bits (1 to 64): the high bits of a product with the golden ratio, which
// differ for neighbouring keys.
CS_ISLAND static inline uint64_t cs_hash_word(uint64_t key, unsigned bits) {
  return key * 0x9E3779B97F4A7C15ull >> (64 - bits);
}

// FNV-1a of bytes that come in pieces: start with CS_HASH_EMPTY, then pass the last result.
#define CS_HASH_EMPTY 0xCBF29CE484222325ull
CS_ISLAND static inline uint64_t cs_hash_more(uint64_t hash, const void *data, size_t len) {
  const uint8_t *bytes = data;
  for (size_t i = 0; i < len; i++) hash = (hash ^ bytes[i]) * 0x100000001B3ull;
  return hash;
}
CS_ISLAND static inline uint64_t cs_hash_bytes(const void *data, size_t len) {
  return cs_hash_more(CS_HASH_EMPTY, data, len);
}

#endif
