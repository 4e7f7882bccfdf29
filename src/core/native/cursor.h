// SPDX-License-Identifier: MIT
// A bounds-checked reader of bytes. Invariant: it never reads beyond `end`. The first read that
// would sets `bad`, which stays set, and from then on every read returns 0. Not for handlers.
#pragma once

#include <string.h>

#include "base/base.h"

struct cs_cursor {
  const uint8_t *at, *end;
  bool bad;
};

static inline struct cs_cursor cs_cursor(const uint8_t *bytes, size_t len) {
  return (struct cs_cursor){.at = bytes, .end = bytes + len};
}
static inline size_t cs_cursor_left(const struct cs_cursor *c) {
  return (size_t)(c->end - c->at);
}
static inline bool cs_cursor_bad(struct cs_cursor *c) {
  c->bad = true;
  c->at = c->end;
  return false;
}
static inline bool cs_cursor_copy(struct cs_cursor *c, void *dst, size_t len) {
  if (CS_UNLIKELY(cs_cursor_left(c) < len)) return cs_cursor_bad(c);
  memcpy(dst, c->at, len);
  c->at += len;
  return true;
}
static inline void cs_cursor_skip(struct cs_cursor *c, uint64_t len) {
  if (cs_cursor_left(c) < len)
    (void)cs_cursor_bad(c);
  else
    c->at += len;
}
static inline uint8_t cs_cursor_u8(struct cs_cursor *c) {
  uint8_t v = 0;
  (void)cs_cursor_copy(c, &v, sizeof v);
  return v;
}
static inline uint16_t cs_cursor_u16(struct cs_cursor *c) {
  uint16_t v = 0;
  (void)cs_cursor_copy(c, &v, sizeof v);
  return v;
}
static inline uint32_t cs_cursor_u32(struct cs_cursor *c) {
  uint32_t v = 0;
  (void)cs_cursor_copy(c, &v, sizeof v);
  return v;
}
static inline uint64_t cs_cursor_u64(struct cs_cursor *c) {
  uint64_t v = 0;
  (void)cs_cursor_copy(c, &v, sizeof v);
  return v;
}

// Reads a LEB128 number. Bits beyond the 64th are dropped. `extend`: it is signed.
static inline uint64_t cs_cursor_leb(struct cs_cursor *c, bool extend) {
  uint64_t v = 0;
  unsigned shift = 0;
  uint8_t byte;
  do {
    byte = cs_cursor_u8(c);
    if (shift < 64) v |= (uint64_t)(byte & 0x7f) << shift;
    shift += 7;
  } while ((byte & 0x80) && !c->bad);
  if (extend && shift < 64 && (byte & 0x40)) v |= ~0ull << shift;
  return v;
}
static inline uint64_t cs_cursor_uleb(struct cs_cursor *c) {
  return cs_cursor_leb(c, false);
}
static inline int64_t cs_cursor_sleb(struct cs_cursor *c) {
  return (int64_t)cs_cursor_leb(c, true);
}
