// SPDX-License-Identifier: MIT
// Bytes that somebody else has written, read from the front: what does not fit is not there. Any
// thread. Signal-safe: yes, as far as memcpy is.
#ifndef CS_BASE_BYTES_H
#define CS_BASE_BYTES_H

#include <string.h>

#include "base/base.h"

struct cs_bytes {
  const uint8_t *at;
  size_t left;
};

// Takes `size` bytes; `out` NULL: they are passed over. False: there are fewer, and all stay.
static inline bool cs_take(struct cs_bytes *bytes, void *out, size_t size) {
  if (bytes->left < size) return false;
  if (out != NULL) memcpy(out, bytes->at, size);
  bytes->at += size;
  bytes->left -= size;
  return true;
}

#endif
