// SPDX-License-Identifier: MIT
// Escaping. Invariant: whatever the bytes, what is written is valid UTF-8 (valid JSON). One thread.
// Signal-safe: no.
#include "util/text.h"

#include <stdbool.h>

#define REPLACEMENT 0xFFFDu

size_t cs_utf8_next(const char *data, size_t len, uint32_t *character) {
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char first = (unsigned char)data[0];
  size_t bytes = first < 0x80       ? 1
                 : first >> 5 == 6  ? 2
                 : first >> 4 == 14 ? 3
                 : first >> 3 == 30 ? 4
                                    : 0;
  *character = REPLACEMENT;
  if (bytes == 0 || bytes > len) return 1;
  uint32_t c = bytes == 1 ? first : first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; i++) {
    if (((unsigned char)data[i] & 0xC0) != 0x80) return 1;
    c = c << 6 | ((unsigned char)data[i] & 0x3F);
  }
  if (c < smallest[bytes] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return 1;
  *character = c;
  return bytes;
}

static void put_utf8(FILE *out, uint32_t c) {
  if (c < 0x80) {
    (void)putc((int)c, out);
    return;
  }
  int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  (void)putc((int)((0xFF80u >> more & 0xFFu) | c >> (6 * more)), out);
  while (more-- > 0) (void)putc((int)(0x80 | (c >> (6 * more) & 0x3F)), out);
}

void cs_put_plain(FILE *out, const char *data, size_t len) {
  uint32_t c;
  for (size_t i = 0; i < len;) {
    i += cs_utf8_next(data + i, len - i, &c);
    put_utf8(out, c < 0x20 || c == 0x7F ? ' ' : c);
  }
}

void cs_put_json(FILE *out, const char *data, size_t len) {
  uint32_t c;
  (void)putc('"', out);
  for (size_t i = 0; i < len;) {
    i += cs_utf8_next(data + i, len - i, &c);
    bool literal = c >= 0x20 && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' &&
                   c != 0x7F && c != 0x2028 && c != 0x2029;
    if (literal) {
      put_utf8(out, c);
    } else {
      (void)fprintf(out, "\\u%04x", (unsigned)c);
    }
  }
  (void)putc('"', out);
}
