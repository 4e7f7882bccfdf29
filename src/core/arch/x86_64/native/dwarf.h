// SPDX-License-Identifier: MIT
// DWARF's register numbers, as in the psABI of x86-64, and whatever else in .eh_frame is specific
// to this architecture. The numbers are translated where .eh_frame is read, and nowhere else.
#pragma once

#include "base/arch.h"

#include "images/images.h"

enum {
  CS_DWARF_FP = 6,
  CS_DWARF_SP = 7,
  CS_DWARF_RA = 16,         // the column of the return address
  CS_DWARF_REGISTERS = 16,  // those that a rule can refer to
  CS_DWARF_COLUMNS = 17,    // those that may have a slot
  CS_DWARF_CODE_ALIGN = 1,  // in every CIE
  CS_DWARF_EH_COLUMNS = 2,  // rax and rdx, which only a function with __builtin_eh_return saves
};
static const uint8_t cs_dwarf_register[CS_DWARF_REGISTERS] = {
    CS_RAX, CS_RDX, CS_RCX, CS_RBX, CS_RSI, CS_RDI, CS_RBP, CS_RSP,
    CS_R8,  CS_R9,  CS_R10, CS_R11, CS_R12, CS_R13, CS_R14, CS_R15,
};
// The slot of a column, plus 1; 0: a register that no call preserves, which is ignored.
static const uint8_t cs_dwarf_slot[CS_DWARF_COLUMNS] = {
    [3] = CS_CFI_RBX + 1,  [6] = CS_CFI_RBP + 1,  [12] = CS_CFI_R12 + 1, [13] = CS_CFI_R13 + 1,
    [14] = CS_CFI_R14 + 1, [15] = CS_CFI_R15 + 1, [16] = CS_CFI_RA + 1,
};

// Sets the rule of the return address at a function's entry. There is nothing to do: the program of
// every CIE describes it.
static inline void cs_dwarf_at_entry(struct cs_cfi_rule *rule) {
  (void)rule;
}
// Returns whether a function that has saved CS_DWARF_EH_COLUMNS is about to leave by
// __builtin_eh_return: its CFA is in rcx then.
static inline bool cs_dwarf_eh_leaves(const struct cs_cfi_rule *rule) {
  return rule->cfa_reg == CS_RCX;
}
// Returns whether this is an operation of the architecture that a walk can ignore. There is none.
static inline bool cs_dwarf_is_ignored(uint8_t op) {
  (void)op;
  return false;
}
