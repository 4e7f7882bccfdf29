// SPDX-License-Identifier: MIT
// Pieces of names, and a text that is made of them. Private to the room.
#ifndef CS_DEMANGLE_TEXT_H
#define CS_DEMANGLE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct cs_piece {
  const char *at;
  size_t len;
};

struct cs_piece cs_piece_of(const char *text);  // NULL: empty
struct cs_piece cs_piece_from(struct cs_piece p, size_t begin);
struct cs_piece cs_piece_until(struct cs_piece p, size_t end);
bool cs_piece_is(struct cs_piece p, const char *text);
bool cs_piece_begins(struct cs_piece p, const char *prefix);
size_t cs_piece_find(struct cs_piece p, char c);       // p.len: it is not there
size_t cs_piece_find_last(struct cs_piece p, char c);  // p.len: it is not there
// What stands before the next `separator` that is in no angle brackets; it and the separator are
// taken off. False: `p` was empty.
bool cs_piece_next(struct cs_piece *p, char separator, struct cs_piece *out);
// The length of "<...>", with its brackets, that `p` begins with; 0: it begins with none, or one
// that has no end.
size_t cs_piece_bracket(struct cs_piece p);

struct cs_demangle_out {
  char *at;
  size_t cap, len;
};
void cs_demangle_put(struct cs_demangle_out *out, struct cs_piece p);
void cs_demangle_puts(struct cs_demangle_out *out, const char *s);

#endif
