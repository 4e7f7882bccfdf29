// SPDX-License-Identifier: MIT
// The registers in an overflow record of the kernel: sp, then ip (signal/kernel.c). Plain data.
#pragma once

#include <asm/perf_regs.h>

#define CS_PERF_SP_AND_IP (1ull << PERF_REG_ARM64_SP | 1ull << PERF_REG_ARM64_PC)
