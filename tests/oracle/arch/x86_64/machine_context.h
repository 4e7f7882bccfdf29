// SPDX-License-Identifier: MIT
// What the CONTEXTs of this architecture have that can be compared for a frame in the middle of a
// stack, and what a call does.
#pragma once

#include <clrsnap/cortypes.h>

typedef AMD64_CONTEXT MACHINE_CONTEXT;
enum { MACHINE_CONTEXT_FLAGS = CONTEXT_AMD64_CONTROL | CONTEXT_AMD64_INTEGER };

enum stack_reg {
  STACK_RBX,
  STACK_RSP,
  STACK_RBP,
  STACK_R12,
  STACK_R13,
  STACK_R14,
  STACK_R15,
  STACK_RIP,
  STACK_REGS,
  // The names of those that every architecture has.
  STACK_SP = STACK_RSP,
  STACK_FP = STACK_RBP,
  STACK_PC = STACK_RIP
};
#define MACHINE_REGISTER_NAMES \
  { "rbx", "rsp", "rbp", "r12", "r13", "r14", "r15", "rip" }
#define MACHINE_REGISTER_DWARF \
  { 3, 7, 6, 12, 13, 14, 15, 16 }
// Where they are in a MACHINE_CONTEXT.
#define MACHINE_REGISTER_OFFSETS                                                                  \
  {                                                                                               \
    offsetof(AMD64_CONTEXT, Rbx), offsetof(AMD64_CONTEXT, Rsp), offsetof(AMD64_CONTEXT, Rbp),     \
        offsetof(AMD64_CONTEXT, R12), offsetof(AMD64_CONTEXT, R13), offsetof(AMD64_CONTEXT, R14), \
        offsetof(AMD64_CONTEXT, R15), offsetof(AMD64_CONTEXT, Rip)                                \
  }

// A call pushes its return address just below the caller's sp.
enum { MACHINE_PUSHES_RETURN_ADDRESS = 1 };
// COR_PRF_EX_CLAUSE_INFO's framePointer is the method's own sp.
enum { MACHINE_CLAUSE_HAS_CALLERS_SP = 0 };
// Of a million frames, so many own an InlinedCallFrame below native ones: twice what was seen.
enum { MACHINE_NATIVE_BEFORE = 4000 };
