// SPDX-License-Identifier: MIT
// Pieces of names. Invariant: no piece reaches beyond the text that it is part of; a text is always
// NUL-terminated. Any thread. Signal-safe: yes, as it calls nothing but string functions.
#include "demangle/text.h"

#include <string.h>

struct cs_piece cs_piece_of(const char *text) {
  return (struct cs_piece){text, text != NULL ? strlen(text) : 0};
}

struct cs_piece cs_piece_from(struct cs_piece p, size_t begin) {
  if (begin > p.len) begin = p.len;
  return (struct cs_piece){p.at + begin, p.len - begin};
}

struct cs_piece cs_piece_until(struct cs_piece p, size_t end) {
  return (struct cs_piece){p.at, end < p.len ? end : p.len};
}

bool cs_piece_begins(struct cs_piece p, const char *prefix) {
  size_t len = strlen(prefix);
  return p.len >= len && memcmp(p.at, prefix, len) == 0;
}

bool cs_piece_is(struct cs_piece p, const char *text) {
  return p.len == strlen(text) && cs_piece_begins(p, text);
}

size_t cs_piece_find(struct cs_piece p, char c) {
  size_t i = 0;
  while (i < p.len && p.at[i] != c) i++;
  return i;
}

size_t cs_piece_find_last(struct cs_piece p, char c) {
  for (size_t i = p.len; i-- > 0;) {
    if (p.at[i] == c) return i;
  }
  return p.len;
}

bool cs_piece_next(struct cs_piece *p, char separator, struct cs_piece *out) {
  size_t depth = 0, i = 0;
  if (p->len == 0) return false;
  for (; i < p->len && (depth > 0 || p->at[i] != separator); i++) {
    if (p->at[i] == '<') depth++;
    if (p->at[i] == '>' && depth > 0) depth--;
  }
  *out = cs_piece_until(*p, i);
  *p = cs_piece_from(*p, i + 1);
  return true;
}

size_t cs_piece_bracket(struct cs_piece p) {
  size_t depth = 0;
  if (p.len == 0 || p.at[0] != '<') return 0;
  for (size_t i = 0; i < p.len; i++) {
    if (p.at[i] == '<') depth++;
    if (p.at[i] == '>' && --depth == 0) return i + 1;
  }
  return 0;
}

void cs_demangle_put(struct cs_demangle_out *out, struct cs_piece p) {
  size_t room = out->cap - out->len - 1;
  if (p.len > room) p.len = room;
  if (p.len > 0) memcpy(out->at + out->len, p.at, p.len);
  out->len += p.len;
  out->at[out->len] = '\0';
}

void cs_demangle_puts(struct cs_demangle_out *out, const char *s) {
  cs_demangle_put(out, cs_piece_of(s));
}
