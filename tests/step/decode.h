// SPDX-License-Identifier: MIT
// As much of the architecture as a stepper needs to know before it steps: does this instruction
// call or return, enter the kernel, change the flags, or load a whole new stack pointer? Written
// from the processor's manual and not from the product's own matching of calls, which this code
// checks.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum insn_kind {
  INSN_OTHER,
  INSN_CALL,
  INSN_RET,
  INSN_JUMP,  // to an address in a register; not on x86-64
  INSN_SYSCALL,
  INSN_TRAP,        // a mark's
  INSN_LOAD_FLAGS,  // with the trap flag; only on x86-64
  INSN_LOAD_SP,
  INSN_EXCLUSIVE,  // begins a sequence that cannot be stepped through; not on x86-64
};

struct insn {
  enum insn_kind kind;
  unsigned length;  // of a call; else 0
};

struct insn decode(const uint8_t *bytes, size_t len);
