// SPDX-License-Identifier: MIT
// The registers that an unwind rule finds: the callee-saved ones and the return address, in this
// order. Plain data. Signal-safe: yes.
#pragma once

#include "base/regs.h"

enum { CS_CFI_X19, CS_CFI_FP = CS_CFI_X19 + 10, CS_CFI_RA, CS_CFI_SLOTS };
static const uint8_t cs_slot_register[CS_CFI_SLOTS] = {
    CS_X19, CS_X20, CS_X21, CS_X22, CS_X23, CS_X24, CS_X25, CS_X26, CS_X27, CS_X28, CS_FP, CS_IP,
};
