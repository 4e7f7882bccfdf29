// SPDX-License-Identifier: MIT
// The DWARF expressions of call-frame programs: the PLT's, [reg + off] + n, [rsp + off + reg * 8] +
// n, and a register at [rsp + off] or [rbp + off]; cfi_run.c has the number of each. Invariant: an
// expression matches a form as a whole, or not at all. Signal-safe: no.
#include "native/cfi_expression.h"

enum {  // DW_OP_*
  OP_DEREF = 0x06,
  OP_AND = 0x1A,
  OP_MUL = 0x1E,
  OP_PLUS = 0x22,
  OP_PLUS_UCONST = 0x23,
  OP_SHL = 0x24,
  OP_GE = 0x2A,
  OP_LIT0 = 0x30,
  OP_BREG0 = 0x70,
};

// Consumes `op` if it comes next.
static bool takes(struct cs_cursor *c, uint8_t op) {
  if (cs_cursor_left(c) == 0 || *c->at != op) return false;
  c->at++;
  return true;
}

static bool is_whole(const struct cs_cursor *c) {
  return !c->bad && cs_cursor_left(c) == 0;
}

// A PLT entry: rsp + 8, and 8 more from `litN` bytes into its 16 on, where it has pushed its index.
static bool is_plt(struct cs_cursor c, struct cs_cfa_form *form) {
  if (!takes(&c, OP_BREG0 + DWARF_RSP) || cs_cursor_sleb(&c) != 8) return false;
  if (!takes(&c, OP_BREG0 + DWARF_RIP) || cs_cursor_sleb(&c) != 0) return false;
  if (!takes(&c, OP_LIT0 + 15) || !takes(&c, OP_AND)) return false;
  unsigned lit = cs_cursor_u8(&c) - (unsigned)OP_LIT0;
  if (lit > 15 || !takes(&c, OP_GE) || !takes(&c, OP_LIT0 + 3)) return false;
  *form = (struct cs_cfa_form){CS_CFA_PLT, 0, DWARF_RSP, lit};
  return takes(&c, OP_SHL) && takes(&c, OP_PLUS) && is_whole(&c);
}

// [rsp + off + reg * 8] + add.
static bool is_indexed(struct cs_cursor c, struct cs_cfa_form *form) {
  if (!takes(&c, OP_BREG0 + DWARF_RSP)) return false;
  int64_t off = cs_cursor_sleb(&c);
  unsigned reg = cs_cursor_u8(&c) - (unsigned)OP_BREG0;
  if (reg >= DWARF_REGISTERS || cs_cursor_sleb(&c) != 0) return false;
  if (!takes(&c, OP_LIT0 + 8) || !takes(&c, OP_MUL) || !takes(&c, OP_PLUS) || !takes(&c, OP_DEREF))
    return false;
  uint64_t add = takes(&c, OP_PLUS_UCONST) ? cs_cursor_uleb(&c) : 0;
  *form = (struct cs_cfa_form){CS_CFA_INDEXED, (uint8_t)add, reg, off};
  return is_whole(&c) && add <= UINT8_MAX;
}

struct cs_cfa_form cs_cfa_form(struct cs_cursor c) {
  struct cs_cfa_form form;
  if (is_indexed(c, &form) || is_plt(c, &form)) return form;
  unsigned reg = cs_cursor_u8(&c) - (unsigned)OP_BREG0;
  int64_t off = cs_cursor_sleb(&c);
  uint8_t how = takes(&c, OP_DEREF) ? CS_CFA_DEREF : CS_CFA_REG;
  uint64_t add = takes(&c, OP_PLUS_UCONST) ? cs_cursor_uleb(&c) : 0;
  if (how == CS_CFA_REG && cs_cfi_fits((int64_t)add)) {
    off += (int64_t)add;
    add = 0;
  }
  if (!is_whole(&c) || !cs_cfi_fits(off) || add > UINT8_MAX) how = CS_CFA_NONE;
  return (struct cs_cfa_form){how, (uint8_t)add, reg, off};
}

uint8_t cs_cfi_register_form(struct cs_cursor c, int64_t *off) {
  uint8_t op = cs_cursor_u8(&c);
  *off = cs_cursor_sleb(&c);
  if (!is_whole(&c)) return CS_CFI_UNDEFINED;
  if (op == OP_BREG0 + DWARF_RSP) return CS_CFI_AT_RSP;
  return op == OP_BREG0 + DWARF_RBP ? CS_CFI_AT_RBP : CS_CFI_UNDEFINED;
}
