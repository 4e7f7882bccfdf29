// SPDX-License-Identifier: MIT
// The shapes of the runtime's stubs that are in no map: their first bytes. Plain data.
#pragma once

#include <stdint.h>

enum { CS_ANY = 0x100, CS_SHAPE_BYTES = 20 };

struct cs_shape {
  const char *name;
  uint16_t align;  // of its first byte
  uint16_t size;   // of the longest instance
  uint16_t count;  // of `bytes`
  uint16_t bytes[CS_SHAPE_BYTES];
};
static const struct cs_shape cs_shapes[] = {
    // ldr x10, target; ldr x12, secret; br x10
    {"[precode stub]",
     8,
     24,
     12,
     {CS_ANY, CS_ANY, CS_ANY, 0x58, CS_ANY, CS_ANY, CS_ANY, 0x58, 0x40, 0x01, 0x1F, 0xD6}},
    // ldr x11, target; br x11; dmb ishld; ldr x12, method; ldr x11, prestub; br x11
    {"[precode stub]",
     8,
     24,
     12,
     {CS_ANY, CS_ANY, CS_ANY, 0x58, 0x60, 0x01, 0x1F, 0xD6, 0xBF, 0x39, 0x03, 0xD5}},
    // ldr x9, counter; ldrh w10, [x9]; subs w10, w10, 1; strh w10, [x9]; ...
    {"[call counting stub]",
     8,
     40,
     16,
     {CS_ANY, CS_ANY, CS_ANY, 0x58, 0x2A, 0x01, 0x40, 0x79, 0x4A, 0x05, 0x00, 0x71, 0x2A, 0x01,
      0x00, 0x79}},
};
