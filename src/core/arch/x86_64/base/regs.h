// SPDX-License-Identifier: MIT
// The registers that a walk carries, numbered as in AMD64 unwind codes and in CONTEXT. DWARF's
// numbers are translated where .eh_frame is read, and nowhere else. Plain data. Signal-safe: yes.
#pragma once

#include "base/base.h"

enum cs_reg {
  CS_RAX,
  CS_RCX,
  CS_RDX,
  CS_RBX,
  CS_RSP,
  CS_RBP,
  CS_RSI,
  CS_RDI,
  CS_R8,
  CS_R9,
  CS_R10,
  CS_R11,
  CS_R12,
  CS_R13,
  CS_R14,
  CS_R15,
  CS_RIP,
  CS_REG_COUNT,
  // Names that every architecture has; only these are used outside of arch/.
  CS_SP = CS_RSP,
  CS_FP = CS_RBP,
  CS_IP = CS_RIP,
  CS_ARGUMENT = CS_RDI  // the first one, of functions and of system calls
};

typedef uint32_t cs_regmask;  // CS_REG_BIT()s
struct cs_regs {
  uint64_t r[CS_REG_COUNT];
  cs_regmask known;  // bit i: r[i] is the value of this frame, not a stale one
};

#define CS_REG_BIT(reg) (1u << (reg))
// The registers that a SysV call preserves: those that a frame in the middle of a stack has.
#define CS_REGS_PRESERVED                                                              \
  (CS_REG_BIT(CS_RBX) | CS_REG_BIT(CS_RSP) | CS_REG_BIT(CS_RBP) | CS_REG_BIT(CS_R12) | \
   CS_REG_BIT(CS_R13) | CS_REG_BIT(CS_R14) | CS_REG_BIT(CS_R15) | CS_REG_BIT(CS_RIP))
// Further registers that are restored where interrupted code continues.
#define CS_REGS_RESUMED 0u
#define CS_REGS_ALL ((1u << CS_REG_COUNT) - 1)

// The preserved registers in a record of a frame (walk/record.h).
enum {
  CS_PRESERVED_RBX,
  CS_PRESERVED_SP,
  CS_PRESERVED_RBP,
  CS_PRESERVED_R12,
  CS_PRESERVED_R13,
  CS_PRESERVED_R14,
  CS_PRESERVED_R15,
  CS_PRESERVED_IP,
  CS_PRESERVED_COUNT,
  CS_PRESERVED_FP = CS_PRESERVED_RBP
};
static const uint8_t cs_preserved_register[CS_PRESERVED_COUNT] = {CS_RBX, CS_RSP, CS_RBP, CS_R12,
                                                                  CS_R13, CS_R14, CS_R15, CS_RIP};
