// SPDX-License-Identifier: MIT
// A label: which distributed trace a thread was working for, and which span of it. The bytes are in
// the order in which W3C trace context writes them; all zero is none. Plain data. Signal-safe: yes.
#ifndef CS_BASE_LABEL_H
#define CS_BASE_LABEL_H

#include "base/base.h"

struct cs_label {
  _Alignas(8) uint8_t trace[16];
  uint8_t span[8];
};
_Static_assert(sizeof(struct cs_label) == 24, "it is on the wire and in files");

#endif
