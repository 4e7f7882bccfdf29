// SPDX-License-Identifier: MIT
// UTF-16 to UTF-8. Invariant: whatever the input is, the output is valid UTF-8 and fits the buffer.
// Any thread. Signal-safe: no.
#include "base/utf16.h"

#include <stdbool.h>

#define REPLACEMENT 0xFFFDu

// Decodes one character of `src`; *used receives 1 or 2 units.
static uint32_t next_char(const uint16_t *src, size_t left, bool bounded, size_t *used) {
  uint32_t unit = src[0];
  *used = 1;
  if (unit < 0xD800 || unit > 0xDFFF) return unit;
  // A high surrogate must be followed by a low one. In an unbounded string at least the NUL
  // follows.
  if (unit > 0xDBFF || (bounded && left < 2)) return REPLACEMENT;
  uint32_t low = src[1];
  if (low < 0xDC00 || low > 0xDFFF) return REPLACEMENT;
  *used = 2;
  return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
}

static size_t encode(char out[4], uint32_t c) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3F));
  static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  out[0] = (char)(lead[n] | c);
  return n;
}

size_t cs_utf16_to_utf8(char *dst, size_t cap, const uint16_t *src, size_t len, size_t *src_used) {
  bool bounded = len != SIZE_MAX;
  size_t in = 0, out = 0;
  while (cap > 0 && (bounded ? in < len : src[in] != 0)) {
    char bytes[4];
    size_t units, n = encode(bytes, next_char(src + in, len - in, bounded, &units));
    if (out + n >= cap) break;
    for (size_t i = 0; i < n; i++) dst[out++] = bytes[i];
    in += units;
  }
  if (cap > 0) dst[out] = '\0';
  if (src_used != NULL) *src_used = in;
  return out;
}
