// SPDX-License-Identifier: MIT
// A bounds-checked reader of untrusted bytes, and numbers in little-endian order. Any thread.
// Signal-safe: yes, if memcpy is.
#pragma once

#include <string.h>

#include "base/base.h"

struct cs_bytes {
  const uint8_t *at;
  size_t left;
};

// Copies the next `size` bytes to `out` and moves past them; if `out` is NULL, only skips them.
// Returns false, without moving, if fewer are left.
static inline bool cs_take(struct cs_bytes *bytes, void *out, size_t size) {
  if (bytes->left < size) return false;
  if (out != NULL) memcpy(out, bytes->at, size);
  bytes->at += size;
  bytes->left -= size;
  return true;
}

static inline uint32_t cs_u16_at(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}
static inline uint32_t cs_u32_at(const uint8_t *at) {
  return cs_u16_at(at) | cs_u16_at(at + 2) << 16;
}
