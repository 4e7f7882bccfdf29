// SPDX-License-Identifier: MIT
// Untrusted bytes: reading takes bytes off the front, and fails at the end. All metadata of a file
// is read in this way. Any thread.
#pragma once

#include "base/base.h"

struct cs_slice {
  const uint8_t *at;
  size_t left;
};

static inline bool cs_slice_cut(struct cs_slice *from, size_t size, struct cs_slice *out) {
  if (size > from->left) return false;
  *out = (struct cs_slice){from->at, size};
  from->at += size;
  from->left -= size;
  return true;
}

static inline bool cs_slice_skip(struct cs_slice *s, size_t size) {
  struct cs_slice passed;
  return cs_slice_cut(s, size, &passed);
}

// Little-endian, of 1 to 8 bytes.
static inline bool cs_slice_number(struct cs_slice *s, size_t size, uint64_t *out) {
  struct cs_slice bytes;
  if (!cs_slice_cut(s, size, &bytes)) return false;
  *out = 0;
  for (size_t i = 0; i < size; i++) *out |= (uint64_t)bytes.at[i] << 8 * i;
  return true;
}

static inline bool cs_slice_u32(struct cs_slice *s, uint32_t *out) {
  uint64_t wide;
  if (!cs_slice_number(s, 4, &wide)) return false;
  *out = (uint32_t)wide;
  return true;
}

// A number of 7, 14 or 29 bits, big-endian (ECMA-335 II.23.2). *bits: its width, for signed
// numbers; may be NULL. (streams.c)
bool cs_slice_compressed(struct cs_slice *s, uint32_t *out, unsigned *bits);
