// SPDX-License-Identifier: MIT
// Distinguishes calls, returns and system calls from all other instructions. Invariant: a call's
// length is what the processor will add to the ip for the return address.
#include "decode.h"

#include <stdbool.h>

static bool is_prefix(uint8_t b) {
  return b == 0x66 || b == 0x67 || b == 0xF0 || b == 0xF2 || b == 0xF3 || b == 0x2E || b == 0x36 ||
         b == 0x3E || b == 0x26 || b == 0x64 || b == 0x65;
}

// ModRM, SIB and displacement.
static unsigned operand_length(const uint8_t *modrm, size_t len) {
  if (len == 0) return 0;
  unsigned mod = modrm[0] >> 6, rm = modrm[0] & 7, n = 1;
  if (mod == 3) return n;
  if (rm == 4) {
    if (len < 2) return 0;
    if (mod == 0 && (modrm[1] & 7) == 5) n += 4;
    n++;
  }
  if (mod == 0 && rm == 5) n += 4;
  if (mod == 1) n += 1;
  if (mod == 2) n += 4;
  return n;
}

struct insn decode(const uint8_t *bytes, size_t len) {
  struct insn insn = {INSN_OTHER, 0};
  unsigned at = 0;
  while (at < len && is_prefix(bytes[at])) at++;
  uint8_t rex = at < len && (bytes[at] & 0xF0) == 0x40 ? bytes[at++] : 0;
  if (at + 1 >= len && !(at < len && (bytes[at] == 0xC3 || bytes[at] == 0xCC))) return insn;
  uint8_t opcode = bytes[at];
  if (opcode == 0xC3 || opcode == 0xC2 || opcode == 0xCB || opcode == 0xCA || opcode == 0xCF) {
    insn.kind = INSN_RET;
  } else if (opcode == 0xCC) {
    insn.kind = INSN_TRAP;
  } else if (opcode == 0x9D) {
    insn.kind = INSN_LOAD_FLAGS;
  } else if (opcode == 0x8B && (rex & 0x0C) == 0x08 && (bytes[at + 1] >> 3 & 7) == 4 &&
             bytes[at + 1] >> 6 != 3) {
    insn.kind = INSN_LOAD_SP;  // mov rsp, [...]
  } else if (opcode == 0x0F && bytes[at + 1] == 0x05) {
    insn.kind = INSN_SYSCALL;
  } else if (opcode == 0xE8) {
    insn = (struct insn){INSN_CALL, at + 5};
  } else if (opcode == 0xFF && (bytes[at + 1] >> 3 & 7) == 2) {
    insn = (struct insn){INSN_CALL, at + 1 + operand_length(bytes + at + 1, len - at - 1)};
  }
  return insn;
}
