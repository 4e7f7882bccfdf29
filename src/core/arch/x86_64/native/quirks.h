// SPDX-License-Identifier: MIT
// Hand-written code of CoreCLR whose .eh_frame is wrong, and its corrections. Not for handlers.
#pragma once

#include "native/cfi.h"

enum {
  CS_QUIRKS = 3,       // functions that are recognised by their own code, on .NET 9 and 10
  CS_QUIRK_MAX = 128,  // more than there are, with those that are recognised by their shape
};

struct cs_quirk_range {
  const char *name;
  uint32_t begin, end;  // offsets in the text
};

// Finds the functions by their code in libcoreclr's `text` (or a copy of it). Returns their number:
// on .NET 10 there are 3, 5 helpers with a transition block, 3 delay-load helpers, and 2 fault
// wrappers.
unsigned cs_quirks_find(const uint8_t *text, size_t size,
                        struct cs_quirk_range found[CS_QUIRK_MAX]);
// Finds the functions and corrects the rows of that text. Returns false if it runs out of memory;
// some rows may then still be wrong.
bool cs_quirks_apply(const uint8_t *text, size_t size, struct cs_rules *rules, struct cs_rows *rows,
                     unsigned *found);
