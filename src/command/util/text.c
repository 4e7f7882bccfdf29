// SPDX-License-Identifier: MIT
// Escaping. Invariant: whatever the bytes, what is written is valid UTF-8 (valid JSON). One thread.
// Signal-safe: no.
#include "util/text.h"

static void put_utf8(FILE *out, uint32_t c) {
  if (c < 0x80) {
    (void)putc((int)c, out);
    return;
  }
  int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  (void)putc((int)((0xFF80u >> more & 0xFFu) | c >> (6 * more)), out);
  while (more-- > 0) (void)putc((int)(0x80 | (c >> (6 * more) & 0x3F)), out);
}

void cs_put_json(FILE *out, const char *data, size_t len) {
  uint32_t c;
  (void)putc('"', out);
  for (size_t i = 0; i < len;) {
    i += cs_utf8_next(data + i, len - i, &c, NULL);
    bool literal = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' &&
                   (c > 0xFFFF || !cs_is_harmful(c));
    if (literal) {
      put_utf8(out, c);
    } else {
      (void)fprintf(out, "\\u%04x", (unsigned)c);
    }
  }
  (void)putc('"', out);
}
