// SPDX-License-Identifier: MIT
// The registers that an unwind rule finds: the callee-saved ones and the return address, in this
// order. Plain data. Signal-safe: yes.
#pragma once

#include "base/regs.h"

enum {
  CS_CFI_RBX,
  CS_CFI_RBP,
  CS_CFI_R12,
  CS_CFI_R13,
  CS_CFI_R14,
  CS_CFI_R15,
  CS_CFI_RA,
  CS_CFI_SLOTS,
  CS_CFI_FP = CS_CFI_RBP
};
static const uint8_t cs_slot_register[CS_CFI_SLOTS] = {CS_RBX, CS_RBP, CS_R12, CS_R13,
                                                       CS_R14, CS_R15, CS_IP};
