// SPDX-License-Identifier: MIT
// DWARF's register numbers, as in the ABI of AArch64, and whatever else in .eh_frame is specific to
// this architecture. The numbers are translated where .eh_frame is read, and nowhere else.
#pragma once

#include "base/arch.h"

#include "images/images.h"

enum {
  CS_DWARF_FP = 29,
  CS_DWARF_RA = 30,  // the column of the return address: that of lr
  CS_DWARF_SP = 31,
  CS_DWARF_REGISTERS = 32,  // those that a rule can refer to
  CS_DWARF_COLUMNS = 31,    // those that may have a slot
  CS_DWARF_CODE_ALIGN = 4,  // in a CIE, or 1
  CS_DWARF_EH_COLUMNS = 4,  // x0 to x3, which a function with __builtin_eh_return saves
};
static const uint8_t cs_dwarf_register[CS_DWARF_REGISTERS] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,    15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, CS_LR, CS_SP,
};
// The slot of a column, plus 1; 0: a register that no call preserves, which is ignored.
static const uint8_t cs_dwarf_slot[CS_DWARF_COLUMNS] = {
    [19] = 1, [20] = 2, [21] = 3, [22] = 4,  [23] = 5,  [24] = 6,
    [25] = 7, [26] = 8, [27] = 9, [28] = 10, [29] = 11, [30] = CS_CFI_RA + 1,
};

// Sets the rule of the return address at a function's entry, and in a leaf: it is in lr, which no
// program states.
static inline void cs_dwarf_at_entry(struct cs_cfi_rule *rule) {
  rule->slot[CS_CFI_RA].how = CS_CFI_IN_REG;
  rule->slot[CS_CFI_RA].off = CS_LR;
}
// Returns whether a function that has saved CS_DWARF_EH_COLUMNS leaves by __builtin_eh_return: it
// saves all other registers as well. Where exactly it leaves cannot be seen.
static inline bool cs_dwarf_eh_leaves(const struct cs_cfi_rule *rule) {
  for (unsigned i = 0; i < CS_CFI_SLOTS; i++)
    if (rule->slot[i].how != CS_CFI_AT_CFA) return false;
  return true;
}
// Returns whether this is an operation of the architecture that a walk can ignore: negate_ra_state
// and negate_ra_state_with_pc say whether return addresses are signed from here on, but a walk
// removes the signature of every return address anyway (cs_ip_of).
static inline bool cs_dwarf_is_ignored(uint8_t op) {
  enum { NEGATE_RA_STATE_WITH_PC = 0x2C, NEGATE_RA_STATE = 0x2D };
  return op == NEGATE_RA_STATE || op == NEGATE_RA_STATE_WITH_PC;
}
