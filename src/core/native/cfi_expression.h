// SPDX-License-Identifier: MIT
// Private to the component: the forms of DWARF expressions that occur in call-frame programs. Not
// for handlers.
#pragma once

#include "native/cfi_ops.h"
#include "native/dwarf.h"

// Returns whether a rule can have this offset.
static inline bool cs_cfi_fits(int64_t v) {
  return v >= INT32_MIN && v <= INT32_MAX;
}

struct cs_cfa_form {
  uint8_t how, add;  // enum cs_cfa_how; CS_CFA_NONE: an unknown form
  unsigned reg;      // DWARF's number
  int64_t off;
};
// Parses the block of a DW_CFA_def_cfa_expression.
struct cs_cfa_form cs_cfa_parse(struct cs_cursor block);

// Parses the block of a register's DW_CFA_expression. Returns CS_CFI_AT_SP or CS_CFI_AT_FP, with
// the offset, or CS_CFI_UNDEFINED for an unknown form.
uint8_t cs_cfi_register_form(struct cs_cursor block, int64_t *off);
