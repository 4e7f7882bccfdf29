// SPDX-License-Identifier: MIT
// Hand-written code of CoreCLR whose .eh_frame is wrong, and what is right. Not for handlers.
#ifndef CS_NATIVE_QUIRKS_H
#define CS_NATIVE_QUIRKS_H

#include "native/cfi.h"

enum {
  CS_QUIRKS = 3,       // functions that are known each by its own code, on .NET 10
  CS_QUIRK_MAX = 128,  // more than there are of those and of the families that are known by shape
};

struct cs_quirk_range {
  const char *name;
  uint32_t begin, end;  // in the text
};

// Finds them by their code in libcoreclr's `text` (a copy of it, or the text itself). Answers how
// many: 3, 5 helpers with a transition block and 2 fault wrappers on .NET 10.
unsigned cs_quirks_find(const uint8_t *text, size_t size,
                        struct cs_quirk_range found[CS_QUIRK_MAX]);
// Finds them and puts right the rows of that text. False: no memory, and some may still be wrong.
bool cs_quirks_apply(const uint8_t *text, size_t size, struct cs_rules *rules, struct cs_rows *rows,
                     unsigned *found);

#endif
