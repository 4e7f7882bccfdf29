// SPDX-License-Identifier: MIT
// Names of types: generic arguments in angle brackets, without their number. Invariant: a bracket
// that is followed by another one, a comma or a star is an array's rank; all others enclose
// arguments. A bracket at the beginning is not a type's: "[GC gen 0, ...]". One thread. Signal-safe:
// no.
#include "naming/type_name.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_NESTING = 64 };

void cs_type_name(const char *raw, char *out, size_t size) {
  char close[MAX_NESTING];
  size_t depth = 0, used = 0;
  for (const char *at = raw; *at != '\0' && used + 1 < size; at++) {
    if (*at == '`') {
      at += strspn(at + 1, "0123456789");
      continue;
    }
    char c = *at;
    if (c == '[' && at > raw && depth < MAX_NESTING) {
      bool array = at[1] != '\0' && strchr("],*", at[1]) != NULL;
      close[depth++] = array ? ']' : '>';
      c = array ? '[' : '<';
    } else if (c == ']' && depth > 0) {
      c = close[--depth];
    }
    out[used++] = c;
  }
  out[used] = '\0';
}
