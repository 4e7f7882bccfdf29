// SPDX-License-Identifier: MIT
// The hash functions of all tables but one: native/rules.c has its own, for 64 bytes at once.
// Signal-safe: yes.
#pragma once

#include "base/base.h"

#define CS_HASH_GOLDEN 0x9E3779B97F4A7C15ull

// Returns a hash of `bits` bits (1 to 64): the high bits of a product with the golden ratio, which
// differ for neighbouring keys.
CS_ISLAND static inline uint64_t cs_hash_word(uint64_t key, unsigned bits) {
  return key * CS_HASH_GOLDEN >> (64 - bits);
}

// Returns the hash of a sequence that ends with `word`, where `hash` is the hash of the words
// before it. Different words after the same hash have different results, and so has the same word
// after different hashes.
CS_ISLAND static inline uint64_t cs_hash_sequence(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * CS_HASH_GOLDEN;
  return hash ^ hash >> 29;
}

// The finalizer of MurmurHash3's 64-bit variant: every bit of the key reaches the low bits.
CS_ISLAND static inline uint64_t cs_hash_spread(uint64_t key) {
  key = (key ^ (key >> 33)) * 0xFF51AFD7ED558CCDull;
  key = (key ^ (key >> 33)) * 0xC4CEB9FE1A85EC53ull;
  return key ^ (key >> 33);
}

// FNV-1a of data that arrives in pieces: start with CS_HASH_EMPTY, then pass the previous result.
#define CS_HASH_EMPTY 0xCBF29CE484222325ull
CS_ISLAND static inline uint64_t cs_hash_more(uint64_t hash, const void *data, size_t len) {
  const uint8_t *bytes = data;
  for (size_t i = 0; i < len; i++) hash = (hash ^ bytes[i]) * 0x100000001B3ull;
  return hash;
}
CS_ISLAND static inline uint64_t cs_hash_bytes(const void *data, size_t len) {
  return cs_hash_more(CS_HASH_EMPTY, data, len);
}
