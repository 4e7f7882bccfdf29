// SPDX-License-Identifier: MIT
// arm64: distinguishes calls, returns, jumps, system calls and loads of the stack pointer from all
// other instructions, by the encodings of the architecture, with and without pointer
// authentication.
#include "decode.h"

#include <stdbool.h>
#include <string.h>

enum { FP = 29, SP = 31 };

// BR, BLR and RET, and those of them that authenticate the address: 1101011 Z 0 op 11111 ....
static enum insn_kind branch_to_register(uint32_t code) {
  if ((code & 0xFE1FF000) != 0xD61F0000) return INSN_OTHER;
  switch (code >> 21 & 3) {
    case 0:
      return INSN_JUMP;
    case 1:
      return INSN_CALL;
    case 2:
      return (code >> 24 & 1) == 0 ? INSN_RET : INSN_OTHER;
    default:
      return INSN_OTHER;
  }
}

// mov sp, xN, and add sp, sp, xN. Not from fp: that is a function's own epilog.
static bool loads_sp(uint32_t code) {
  unsigned from = code >> 5 & 31;
  bool move = (code & 0xFFFFFC1F) == 0x9100001F && from != FP && from != SP;
  return move || (code & 0xFFE0FFFF) == 0x8B2063FF;
}

// LDXR and LDAXR of any size, LDXP and LDAXP.
static bool is_exclusive(uint32_t code) {
  return (code & 0x3FE00000) == 0x08400000 || (code & 0xBFE00000) == 0x88600000;
}

struct insn decode(const uint8_t *bytes, size_t len) {
  struct insn insn = {INSN_OTHER, 0};
  uint32_t code;
  if (len < sizeof code) return insn;
  memcpy(&code, bytes, sizeof code);
  insn.kind = branch_to_register(code);
  if (code >> 26 == 0x25) insn.kind = INSN_CALL;  // bl
  if ((code & 0xFFE0001F) == 0xD4000001) insn.kind = INSN_SYSCALL;
  if ((code & 0xFFE0001F) == 0xD4200000) insn.kind = INSN_TRAP;
  if (loads_sp(code)) insn.kind = INSN_LOAD_SP;
  if (is_exclusive(code)) insn.kind = INSN_EXCLUSIVE;
  if (insn.kind == INSN_CALL) insn.length = sizeof code;
  return insn;
}
