// SPDX-License-Identifier: MIT
// What the CONTEXTs of this architecture have that can be compared for a frame in the middle of a
// stack, and what a call does.
#pragma once

#include <clrsnap/cortypes.h>

typedef ARM64_CONTEXT MACHINE_CONTEXT;
enum { MACHINE_CONTEXT_FLAGS = CONTEXT_ARM64_CONTROL | CONTEXT_ARM64_INTEGER };

enum stack_reg { STACK_X19, STACK_FP = STACK_X19 + 10, STACK_SP, STACK_PC, STACK_REGS };
#define MACHINE_REGISTER_NAMES \
  { "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "fp", "sp", "pc" }
#define MACHINE_REGISTER_DWARF \
  { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31, 30 }
// Where they are in a MACHINE_CONTEXT: x0 to x28, fp, lr, sp, pc follow each other.
#define MACHINE_X(n) (offsetof(ARM64_CONTEXT, X) + (n) * sizeof(DWORD64))
#define MACHINE_REGISTER_OFFSETS                                                                 \
  {                                                                                              \
    MACHINE_X(19), MACHINE_X(20), MACHINE_X(21), MACHINE_X(22), MACHINE_X(23), MACHINE_X(24),    \
        MACHINE_X(25), MACHINE_X(26), MACHINE_X(27), MACHINE_X(28), offsetof(ARM64_CONTEXT, Fp), \
        offsetof(ARM64_CONTEXT, Sp), offsetof(ARM64_CONTEXT, Pc)                                 \
  }

enum { MACHINE_PUSHES_RETURN_ADDRESS = 0 };  // it is in lr
// COR_PRF_EX_CLAUSE_INFO's framePointer is the caller's sp.
enum { MACHINE_CLAUSE_HAS_CALLERS_SP = 1 };
// Of a million frames, so many own an InlinedCallFrame below native ones: twice what was seen: all
// code is jitted there, and QCalls have more callbacks.
enum { MACHINE_NATIVE_BEFORE = 12000 };
