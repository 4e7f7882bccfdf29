// SPDX-License-Identifier: MIT
// x86-64: registers with a meaning, and the instruction of a mark. Plain data.
#pragma once

#include "base/regs.h"

enum {
  INSN_MAX = 15,        // bytes of an instruction
  MARK_REG = CS_RAX,    // of a mark: what it is
  NAME_REG = CS_RDI,    // the name of the scene
  NUMBER_REG = CS_RAX,  // of a system call
  SYS_SIGRETURN = 15,
};
