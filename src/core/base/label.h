// SPDX-License-Identifier: MIT
// A label: the distributed trace that a thread was working for, and its span. The bytes are in the
// order of W3C trace context. All zero: none. Plain data. Signal-safe: yes.
#ifndef CS_BASE_LABEL_H
#define CS_BASE_LABEL_H

#include "base/base.h"

struct cs_label {
  _Alignas(8) uint8_t trace[16];
  uint8_t span[8];
};
_Static_assert(sizeof(struct cs_label) == 24, "it is on the wire and in files");

#endif
