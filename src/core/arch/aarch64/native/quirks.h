// SPDX-License-Identifier: MIT
// Hand-written code of CoreCLR whose .eh_frame is wrong, and its corrections. Not for handlers.
#ifndef CS_NATIVE_QUIRKS_H
#define CS_NATIVE_QUIRKS_H

#include "native/cfi.h"

enum { CS_QUIRKS = 0 };  // none is known on this architecture

static inline bool cs_quirks_apply(const uint8_t *text, size_t size, struct cs_rules *rules,
                                   struct cs_rows *rows, unsigned *found) {
  (void)text;
  (void)size;
  (void)rules;
  (void)rows;
  *found = 0;
  return true;
}

#endif
