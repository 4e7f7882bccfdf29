// SPDX-License-Identifier: MIT
// Private to the component: the operations of DWARF expressions, and how they are read. Not for
// handlers.
#pragma once

#include "native/cursor.h"

enum {  // DW_OP_*
  CS_OP_DEREF = 0x06,
  CS_OP_AND = 0x1A,
  CS_OP_MUL = 0x1E,
  CS_OP_PLUS = 0x22,
  CS_OP_PLUS_UCONST = 0x23,
  CS_OP_SHL = 0x24,
  CS_OP_GE = 0x2A,
  CS_OP_LIT0 = 0x30,
  CS_OP_BREG0 = 0x70,
};

// Consumes `op` if it comes next.
static inline bool cs_op_accept(struct cs_cursor *c, uint8_t op) {
  if (cs_cursor_left(c) == 0 || *c->at != op) return false;
  c->at++;
  return true;
}

static inline bool cs_op_at_end(const struct cs_cursor *c) {
  return !c->bad && cs_cursor_left(c) == 0;
}
