// SPDX-License-Identifier: MIT
// Names of types: generic arguments in angle brackets, without their number, and C#'s keywords, as
// in the names of methods. Invariant: a bracket that is followed by another one, a comma or a star
// is an array's rank; all others enclose arguments. A bracket at the beginning is not a type's:
// "[GC gen 0, ...]". One thread. Signal-safe: no.
#include "naming/type_name.h"

#include <stdbool.h>
#include <string.h>

#include "base/keywords.h"
#include "base/prefix.h"

enum { MAX_NESTING = 64 };

// Replaces the name that ends at `used` and begins after `begin` bytes if C# has a keyword for it,
// which is always shorter. Returns where it ends then.
static size_t put_keyword(char *out, size_t begin, size_t used) {
  const char *name = out + begin;
  size_t space = strlen("System."), len = used - begin;
  const char *keyword =
      cs_has_prefix_in(name, len, "System.") ? cs_keyword_of_type(name + space, len - space) : NULL;
  if (keyword == NULL) return used;
  len = strlen(keyword);
  memcpy(out + begin, keyword, len);
  return begin + len;
}

void cs_type_name(const char *raw, char *out, size_t size) {
  char close[MAX_NESTING];
  size_t depth = 0, used = 0, begin = 0;
  bool type = raw[0] != '[';
  for (const char *at = raw; *at != '\0' && used + 1 < size; at++) {
    if (*at == '`') {
      at += strspn(at + 1, "0123456789");
      continue;
    }
    char c = *at;
    bool ends = type && strchr("[],*&", c) != NULL;
    if (ends) used = put_keyword(out, begin, used);
    if (c == '[' && at > raw && depth < MAX_NESTING) {
      bool array = at[1] != '\0' && strchr("],*", at[1]) != NULL;
      close[depth++] = array ? ']' : '>';
      c = array ? '[' : '<';
    } else if (c == ']' && depth > 0) {
      c = close[--depth];
    }
    out[used++] = c;
    if (ends) begin = used;
  }
  if (type) used = put_keyword(out, begin, used);
  out[used] = '\0';
}
