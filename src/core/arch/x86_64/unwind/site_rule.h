// SPDX-License-Identifier: MIT
// The part of a rule that the call-site cache keeps besides the CFA. Plain data. Signal-safe: yes.
#pragma once

#include "images/slots.h"

enum {
  CS_SITE_SAVED = CS_CFI_SLOTS - 1,  // registers that a frame may save: all but the ip
  // Where the return address is, in words from the CFA; 0: the slot CS_CFI_RA of `saved` says
  // where.
  CS_SITE_RA = -1,
};

// The registers that a frame saves besides its return address.
struct cs_site_rule {
  int16_t saved[CS_SITE_SAVED];  // words from the CFA, in the order of CS_CFI_RBX ...; 0: not saved
  uint16_t restores;             // CS_REG_BIT()s of the saved ones
  uint16_t span;                 // words from the CFA to the lowest of them
};
