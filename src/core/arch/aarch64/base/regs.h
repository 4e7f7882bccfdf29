// SPDX-License-Identifier: MIT
// The registers that a walk carries, numbered as in ARM64 unwind codes, in CONTEXT and in DWARF (up
// to sp). Plain data. Signal-safe: yes.
#pragma once

#include "base/base.h"

enum cs_reg {
  CS_X0,
  CS_ARGUMENT = CS_X0,  // the first one, of functions and of system calls
  CS_X8 = 8,
  CS_X16 = 16,
  CS_X17,
  CS_X19 = 19,
  CS_X20,
  CS_X21,
  CS_X22,
  CS_X23,
  CS_X24,
  CS_X25,
  CS_X26,
  CS_X27,
  CS_X28,
  CS_FP,
  CS_LR,
  CS_SP,
  CS_IP,
  CS_REG_COUNT
};

typedef uint64_t cs_regmask;  // CS_REG_BIT()s
struct cs_regs {
  uint64_t r[CS_REG_COUNT];
  cs_regmask known;  // bit i: r[i] is the value of this frame, not a stale one
};

#define CS_REG_BIT(reg) (1ull << (reg))
// The registers that a call preserves: those that a frame in the middle of a stack has. Not lr,
// which every call overwrites.
#define CS_REGS_PRESERVED                                                                  \
  ((CS_REG_BIT(CS_X28 + 1) - CS_REG_BIT(CS_X19)) | CS_REG_BIT(CS_FP) | CS_REG_BIT(CS_SP) | \
   CS_REG_BIT(CS_IP))
// Further registers that are restored where interrupted code continues: the return address of a
// leaf.
#define CS_REGS_RESUMED CS_REG_BIT(CS_LR)
#define CS_REGS_ALL (CS_REG_BIT(CS_REG_COUNT) - 1)

// The preserved registers in a record of a frame (walk/record.h).
enum {
  CS_PRESERVED_X19,
  CS_PRESERVED_FP = CS_PRESERVED_X19 + 10,
  CS_PRESERVED_SP,
  CS_PRESERVED_IP,
  CS_PRESERVED_COUNT
};
static const uint8_t cs_preserved_register[CS_PRESERVED_COUNT] = {
    CS_X19, CS_X20, CS_X21, CS_X22, CS_X23, CS_X24, CS_X25,
    CS_X26, CS_X27, CS_X28, CS_FP,  CS_SP,  CS_IP,
};
