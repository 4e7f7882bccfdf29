// SPDX-License-Identifier: MIT
// Writing JSON. Invariant: whatever the bytes of a text, what is written is valid UTF-8 and valid
// JSON. One thread. Signal-safe: no.
#include "util/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/print.h"

static void put_separator(struct cs_json_writer *j) {
  if (j->comma) (void)putc(',', j->out);
  if (j->new_line) (void)putc('\n', j->out);
  j->new_line = false;
}

static void begin(struct cs_json_writer *j, const char *key) {
  put_separator(j);
  if (key != NULL) (void)fprintf(j->out, "\"%s\":", key);
  j->comma = true;
}

void cs_json_new_line(struct cs_json_writer *j) {
  j->new_line = true;
}

void cs_json_open(struct cs_json_writer *j, const char *key, char bracket) {
  begin(j, key);
  (void)putc(bracket, j->out);
  j->comma = false;
}

void cs_json_open_line(struct cs_json_writer *j, const char *key, char bracket) {
  cs_json_new_line(j);
  cs_json_open(j, key, bracket);
}

void cs_json_close(struct cs_json_writer *j, const char *brackets) {
  j->comma = false;
  put_separator(j);
  (void)fputs(brackets, j->out);
  j->comma = true;
}

bool cs_json_end(struct cs_json_writer *j, const char *brackets) {
  cs_json_close(j, brackets);
  (void)putc('\n', j->out);
  return fflush(j->out) == 0 && !ferror(j->out);
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

void cs_json_bytes(struct cs_json_writer *j, const char *key, const char *data, size_t len) {
  uint32_t c;
  begin(j, key);
  (void)putc('"', j->out);
  for (size_t i = 0; i < len;) {
    i += cs_utf8_next(data + i, len - i, &c, NULL);
    bool literal = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' &&
                   (c > 0xFFFF || !cs_is_unprintable(c));
    if (literal) {
      put_utf8(j->out, c);
    } else {
      (void)fprintf(j->out, "\\u%04x", (unsigned)c);
    }
  }
  (void)putc('"', j->out);
}

void cs_json_text(struct cs_json_writer *j, const char *key, const char *text) {
  if (text != NULL)
    cs_json_bytes(j, key, text, strlen(text));
  else
    cs_json_null(j, key);
}

static void put_word(struct cs_json_writer *j, const char *key, const char *word) {
  begin(j, key);
  (void)fputs(word, j->out);
}

void cs_json_bool(struct cs_json_writer *j, const char *key, bool value) {
  put_word(j, key, value ? "true" : "false");
}

void cs_json_null(struct cs_json_writer *j, const char *key) {
  put_word(j, key, "null");
}

void cs_json_int(struct cs_json_writer *j, const char *key, int64_t value) {
  begin(j, key);
  (void)fprintf(j->out, "%" PRId64, value);
}

void cs_json_uint(struct cs_json_writer *j, const char *key, uint64_t value) {
  begin(j, key);
  (void)fprintf(j->out, "%" PRIu64, value);
}

void cs_json_uints(struct cs_json_writer *j, const struct cs_json_uint *members, size_t count) {
  for (size_t i = 0; i < count; i++) cs_json_uint(j, members[i].key, members[i].value);
}

void cs_json_texts(struct cs_json_writer *j, const struct cs_json_text *members, size_t count) {
  for (size_t i = 0; i < count; i++) cs_json_text(j, members[i].key, members[i].text);
}

void cs_json_decimal(struct cs_json_writer *j, const char *key, uint64_t value, unsigned digits) {
  uint64_t one = 1;
  for (unsigned i = 0; i < digits; i++) one *= 10;
  begin(j, key);
  (void)fprintf(j->out, "%" PRIu64 ".%0*" PRIu64, value / one, (int)digits, value % one);
}

void cs_json_fixed(struct cs_json_writer *j, const char *key, double value, int decimals) {
  begin(j, key);
  (void)fprintf(j->out, "%.*f", decimals, value);
}

void cs_json_real(struct cs_json_writer *j, const char *key, double value) {
  begin(j, key);
  (void)fprintf(j->out, "%.12g", value);
}
