// SPDX-License-Identifier: MIT
// What .eh_frame of x86-64 code contains besides plain rows: the kernel's signal frame,
// setcontext, the PLT, [rsp + off + reg * 8] + n; and the detection of functions that describe
// themselves wrongly. Not for handlers.
#include "native/cfi_special.h"

enum { UCONTEXT_RSP = 160, UCONTEXT_RIP = 168 };  // uc_mcontext.gregs, from the trampoline's rsp

bool cs_cfi_is_kernel_frame(const struct cs_cfi_rule *rule) {
  return rule->cfa_how == CS_CFA_DEREF && rule->cfa_reg == CS_RSP &&
         rule->cfa_off == UCONTEXT_RSP && rule->cfa_add == 0 &&
         rule->slot[CS_CFI_RA].how == CS_CFI_AT_SP && rule->slot[CS_CFI_RA].off == UCONTEXT_RIP;
}

bool cs_cfi_is_ucontext(const struct cs_cfi_state *state) {
  const struct cs_cfi_rule *rule = &state->rule;
  return state->rsp_ruled && state->rsp_at == UCONTEXT_RSP && rule->cfa_how == CS_CFA_REG &&
         rule->cfa_off == 0 && rule->slot[CS_CFI_RA].how == CS_CFI_AT_CFA &&
         rule->slot[CS_CFI_RA].off == UCONTEXT_RIP;
}

// Returns whether the code [at, end) is a return (ret, rep ret).
static bool ends_with_ret(const struct cs_cfi_build *build, uint32_t at, uint32_t end) {
  uint8_t code[2];
  uint32_t len = end - at;
  const struct cs_cfi_section *section = build->section;
  if (len == 0 || len > sizeof code || section->process == NULL ||
      !cs_process_memory_read(section->process, build->text + at, code, len))
    return false;
  return code[len - 1] == 0xC3 && (len == 1 || code[0] == 0xF3);
}

// Hand-written functions with wrong unwind data: these are all that are known, from a comparison
// of the rule at every ret of libcoreclr, libclrjit, libc, libstdc++ and libcrypto with rsp + 8,
// which it must be:
//
//   libcoreclr's delay-load helpers (5)    They have two epilogs in a row, and the pops of the
//                                          first are taken to hold for the second, so the CFA ends
//                                          up below rsp. native/quirks.c gives them their rows.
//   libcoreclr's hook for a method's end,  An adjustment is missing or has the wrong sign, and the
//   two functions of libcrypto             CFA at the last ret is wrong.
//   OnHijackTripThread                     It is entered by a ret, pushes room for a return
//                                          address, and leaves by a second ret. Its CFA is a word
//                                          too high throughout.
//
// In the first two rows, prologs and bodies are right. A function that returns with one word more
// than a call would have pushed was not called. (The runtime links a HijackFrame there.)
enum cs_cfi_end cs_cfi_check_end(const struct cs_cfi_build *build, uint32_t last_row, uint32_t end,
                                 int32_t height) {
  if (height == 0 || height == 8 || !ends_with_ret(build, last_row, end)) return CS_CFI_END_RIGHT;
  return height == 16 ? CS_CFI_END_NOT_CALLED : CS_CFI_END_WRONG;
}

// A PLT entry of 16 bytes: rsp + 8, or from byte `litN` on, where it has pushed its index, rsp +
// 16.
static bool is_plt(struct cs_cursor c, struct cs_cfa_form *form) {
  if (!cs_op_accept(&c, CS_OP_BREG0 + CS_DWARF_SP) || cs_cursor_sleb(&c) != 8) return false;
  if (!cs_op_accept(&c, CS_OP_BREG0 + CS_DWARF_RA) || cs_cursor_sleb(&c) != 0) return false;
  if (!cs_op_accept(&c, CS_OP_LIT0 + 15) || !cs_op_accept(&c, CS_OP_AND)) return false;
  unsigned lit = cs_cursor_u8(&c) - (unsigned)CS_OP_LIT0;
  if (lit > 15 || !cs_op_accept(&c, CS_OP_GE) || !cs_op_accept(&c, CS_OP_LIT0 + 3)) return false;
  *form = (struct cs_cfa_form){CS_CFA_PLT, 0, CS_DWARF_SP, lit};
  return cs_op_accept(&c, CS_OP_SHL) && cs_op_accept(&c, CS_OP_PLUS) && cs_op_at_end(&c);
}

// [rsp + off + reg * 8] + add.
static bool is_indexed(struct cs_cursor c, struct cs_cfa_form *form) {
  if (!cs_op_accept(&c, CS_OP_BREG0 + CS_DWARF_SP)) return false;
  int64_t off = cs_cursor_sleb(&c);
  unsigned reg = cs_cursor_u8(&c) - (unsigned)CS_OP_BREG0;
  if (reg >= CS_DWARF_REGISTERS || cs_cursor_sleb(&c) != 0) return false;
  if (!cs_op_accept(&c, CS_OP_LIT0 + 8) || !cs_op_accept(&c, CS_OP_MUL) ||
      !cs_op_accept(&c, CS_OP_PLUS) || !cs_op_accept(&c, CS_OP_DEREF))
    return false;
  uint64_t add = cs_op_accept(&c, CS_OP_PLUS_UCONST) ? cs_cursor_uleb(&c) : 0;
  *form = (struct cs_cfa_form){CS_CFA_INDEXED, (uint8_t)add, reg, off};
  return cs_op_at_end(&c) && add <= UINT8_MAX;
}

bool cs_cfa_special(struct cs_cursor c, struct cs_cfa_form *form) {
  return is_indexed(c, form) || is_plt(c, form);
}
