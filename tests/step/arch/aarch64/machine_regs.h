// SPDX-License-Identifier: MIT
// arm64: registers with a meaning. Plain data.
#pragma once

#include "base/regs.h"

enum {
  INSN_MAX = 4,          // bytes of an instruction
  MARK_REG = CS_X0,      // of a mark: what it is
  NAME_REG = CS_X0 + 1,  // the name of the scene
  NUMBER_REG = CS_X8,    // of a system call
  SYS_SIGRETURN = 139,
};
