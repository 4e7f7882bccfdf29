// SPDX-License-Identifier: MIT
// As much of x86-64 as a stepper needs to know before it steps: does this instruction push a return
// address, pop one, enter the kernel, change the flags, or load a whole new stack pointer?
#pragma once

#include <stddef.h>
#include <stdint.h>

enum insn_kind {
  INSN_OTHER,
  INSN_CALL,
  INSN_RET,
  INSN_SYSCALL,
  INSN_INT3,
  INSN_POPF,
  INSN_LOAD_SP
};
enum { INSN_MAX = 15 };

struct insn {
  enum insn_kind kind;
  unsigned length;  // of a call; else 0
};

struct insn decode(const uint8_t *bytes, size_t len);
