// SPDX-License-Identifier: MIT
// Names of types: generic arguments in angle brackets, without their number, and C#'s keywords, as in
// the names of methods. Invariant: a bracket that is followed by another one, a comma or a star is an
// array's rank; all others enclose arguments. A bracket at the beginning is not a type's: "[GC gen
// 0, ...]". One thread. Signal-safe: no.
#include "naming/type_name.h"

#include <stdbool.h>
#include <string.h>

#include "base/prefix.h"
#include "util/map.h"

enum { MAX_NESTING = 64 };

// Replaces the name that ends at `used` and begins after `begin` bytes if C# has a keyword for it, which
// is always shorter. Returns where it ends then.
static size_t put_keyword(char *out, size_t begin, size_t used) {
  static const char *const keywords[][2] = {
      {"Void", "void"},     {"Boolean", "bool"},   {"Char", "char"},     {"SByte", "sbyte"},
      {"Byte", "byte"},     {"Int16", "short"},    {"UInt16", "ushort"}, {"Int32", "int"},
      {"UInt32", "uint"},   {"Int64", "long"},     {"UInt64", "ulong"},  {"Single", "float"},
      {"Double", "double"}, {"String", "string"},  {"IntPtr", "nint"},   {"UIntPtr", "nuint"},
      {"Object", "object"}, {"Decimal", "decimal"}};
  const char *name = out + begin;
  size_t space = strlen("System."), len = used - begin;
  if (!cs_has_prefix_in(name, len, "System.")) return used;
  for (size_t i = 0; i < CS_COUNT(keywords); i++) {
    if (len != space + strlen(keywords[i][0]) ||
        memcmp(name + space, keywords[i][0], len - space) != 0)
      continue;
    len = strlen(keywords[i][1]);
    memcpy(out + begin, keywords[i][1], len);
    return begin + len;
  }
  return used;
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
