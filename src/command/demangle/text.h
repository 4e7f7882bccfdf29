// SPDX-License-Identifier: MIT
// Pieces of names, and text made of them. Private to the component.
#pragma once

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
size_t cs_piece_find(struct cs_piece p, char c);       // p.len: not found
size_t cs_piece_find_last(struct cs_piece p, char c);  // p.len: not found
// Takes the text before the next `separator` outside of angle brackets, and the separator, off `p`.
// Returns false if `p` is empty.
bool cs_piece_next(struct cs_piece *p, char separator, struct cs_piece *out);
// Returns the length of the "<...>" that `p` begins with, brackets included, or 0 if there is
// none, or it does not end.
size_t cs_piece_bracket(struct cs_piece p);

struct cs_demangle_out {
  char *at;
  size_t cap, len;
  bool numbers;           // names have the compiler's numbers, too
  struct cs_piece scope;  // the number of the closure that the numbers are counted in; may be empty
};
void cs_demangle_put(struct cs_demangle_out *out, struct cs_piece p);
void cs_demangle_puts(struct cs_demangle_out *out, const char *s);
