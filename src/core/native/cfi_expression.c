// SPDX-License-Identifier: MIT
// The DWARF expressions of call-frame programs: [reg + off] + n, a register at [sp + off] or [fp +
// off], and the architecture's own; cfi_run.c has the number of each. Invariant: an expression
// matches a form as a whole, or not at all. Signal-safe: no.
#include "native/cfi_expression.h"

#include "native/cfi_special.h"

struct cs_cfa_form cs_cfa_parse(struct cs_cursor c) {
  struct cs_cfa_form form;
  if (cs_cfa_special(c, &form)) return form;
  unsigned reg = cs_cursor_u8(&c) - (unsigned)CS_OP_BREG0;
  int64_t off = cs_cursor_sleb(&c);
  uint8_t how = cs_op_accept(&c, CS_OP_DEREF) ? CS_CFA_DEREF : CS_CFA_REG;
  uint64_t add = cs_op_accept(&c, CS_OP_PLUS_UCONST) ? cs_cursor_uleb(&c) : 0;
  if (how == CS_CFA_REG && cs_cfi_fits((int64_t)add)) {
    off += (int64_t)add;
    add = 0;
  }
  if (!cs_op_at_end(&c) || !cs_cfi_fits(off) || add > UINT8_MAX) how = CS_CFA_NONE;
  return (struct cs_cfa_form){how, (uint8_t)add, reg, off};
}

uint8_t cs_cfi_register_form(struct cs_cursor c, int64_t *off) {
  uint8_t op = cs_cursor_u8(&c);
  *off = cs_cursor_sleb(&c);
  if (!cs_op_at_end(&c)) return CS_CFI_UNDEFINED;
  if (op == CS_OP_BREG0 + CS_DWARF_SP) return CS_CFI_AT_SP;
  return op == CS_OP_BREG0 + CS_DWARF_FP ? CS_CFI_AT_FP : CS_CFI_UNDEFINED;
}
