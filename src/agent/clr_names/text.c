// SPDX-License-Identifier: MIT
// Bounded text. Invariant: at[len] is NUL and len < cap; once something has been left out, only the
// mark at the end changes, so that a cut text has no gap. Any thread. Signal-safe: no.
#include "clr_names/text.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf16.h"

enum { DIGITS = 6, MARK = 4 + DIGITS, MIN_MARKED = 4 * MARK };  // "…~" is 4 bytes

struct cs_text_out cs_text_begin(char *buffer, size_t cap) {
  buffer[0] = '\0';
  return (struct cs_text_out){buffer, cap, 0, false, CS_HASH_EMPTY};
}

static bool is_inside_character(const char *text, size_t at) {
  return ((unsigned char)text[at] & 0xC0) == 0x80;
}

// Makes room for the mark, in place of the last characters.
static void cut(struct cs_text_out *out) {
  out->cut = true;
  out->hash = cs_hash_more(out->hash, out->at, out->len);
  if (out->cap < MIN_MARKED) return;
  size_t len = out->cap - 1 - MARK;
  if (len > out->len) len = out->len;
  while (len > 0 && is_inside_character(out->at, len)) len--;
  out->len = len + MARK;
}

static void leave_out(struct cs_text_out *out, const void *more, size_t len) {
  out->hash = cs_hash_more(out->hash, more, len);
  if (out->cap < MIN_MARKED) return;
  (void)snprintf(out->at + out->len - MARK, MARK + 1, "…~%0*llx", DIGITS,
                 (unsigned long long)(cs_hash_spread(out->hash) & ((1u << 4 * DIGITS) - 1)));
}

void cs_text_add_len(struct cs_text_out *out, const char *text, size_t len) {
  size_t fits = len;
  if (out->cut) {
    leave_out(out, text, len);
    return;
  }
  if (len >= out->cap - out->len) {
    fits = out->cap - out->len - 1;
    while (fits > 0 && is_inside_character(text, fits)) fits--;
  }
  memcpy(out->at + out->len, text, fits);
  out->len += fits;
  out->at[out->len] = '\0';
  if (fits == len) return;
  cut(out);
  leave_out(out, text + fits, len - fits);
}

void cs_text_add(struct cs_text_out *out, const char *text) {
  cs_text_add_len(out, text, strlen(text));
}

void cs_text_add_char(struct cs_text_out *out, char c) {
  cs_text_add_len(out, &c, 1);
}

void cs_text_add_uint(struct cs_text_out *out, uint32_t value) {
  char digits[16];
  (void)snprintf(digits, sizeof digits, "%u", value);
  cs_text_add(out, digits);
}

void cs_text_add_utf16(struct cs_text_out *out, const WCHAR *text, size_t units) {
  size_t used = 0;
  if (!out->cut) {
    out->len += cs_utf16_to_utf8(out->at + out->len, out->cap - out->len, text, units, &used);
    if (used == units) return;
    cut(out);
  }
  leave_out(out, text + used, (units - used) * sizeof *text);
}
