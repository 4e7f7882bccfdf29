// SPDX-License-Identifier: MIT
// Bounded text. Invariant: at[len] is NUL and len < cap; once something has been left out, nothing
// more is added, so that a cut text has no gap. Any thread. Signal-safe: no.
#include "clr_names/text.h"

#include <stdio.h>
#include <string.h>

#include "base/utf16.h"

struct cs_text_out cs_text_begin(char *buffer, size_t cap) {
  buffer[0] = '\0';
  return (struct cs_text_out){buffer, cap, 0, false};
}

static bool is_inside_character(const char *text, size_t at) {
  return ((unsigned char)text[at] & 0xC0) == 0x80;
}

void cs_text_add_len(struct cs_text_out *out, const char *text, size_t len) {
  if (out->cut) return;
  if (len >= out->cap - out->len) {
    out->cut = true;
    len = out->cap - out->len - 1;
    while (len > 0 && is_inside_character(text, len)) len--;
  }
  memcpy(out->at + out->len, text, len);
  out->len += len;
  out->at[out->len] = '\0';
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
  if (out->cut) return;
  size_t used = 0;
  out->len += cs_utf16_to_utf8(out->at + out->len, out->cap - out->len, text, units, &used);
  out->cut = used < units;
}
