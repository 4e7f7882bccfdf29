// SPDX-License-Identifier: MIT
// A text in a buffer of fixed size, to which texts are added, and which is always terminated. What
// does not fit is left out, from the start of a character on, and sets `cut`. A text that is cut
// ends with "…~" and six digits of a hash of the whole text, unless the buffer is small: two long
// names that begin alike are not taken for one. Not for handlers.
#pragma once

#include "clrsnap/cortypes.h"

#include <stdbool.h>
#include <stdint.h>

struct cs_text_out {
  char *at;
  size_t cap, len;
  bool cut;
  uint64_t hash;  // of the whole text, once it is cut
};

struct cs_text_out cs_text_begin(char *buffer, size_t cap);  // cap > 0
void cs_text_add(struct cs_text_out *out, const char *text);
void cs_text_add_len(struct cs_text_out *out, const char *text, size_t len);
void cs_text_add_char(struct cs_text_out *out, char c);
void cs_text_add_uint(struct cs_text_out *out, uint32_t value);
// Adds UTF-16, as the metadata and profiling interfaces return it; `units` without the NUL.
void cs_text_add_utf16(struct cs_text_out *out, const WCHAR *text, size_t units);
