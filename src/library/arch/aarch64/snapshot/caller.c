// SPDX-License-Identifier: MIT
// The registers of a function's caller. Async-signal-safe.
#include "snapshot/self.h"

// In assembly, since no C function knows its caller's registers: the callee-saved ones and sp are
// still untouched, and lr holds the return address.
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl cs_regs_of_caller\n"
    ".hidden cs_regs_of_caller\n"
    ".type cs_regs_of_caller, %function\n"
    "cs_regs_of_caller:\n"
    "  .cfi_startproc\n"
    "  stp x19, x20, [x0, #19*8]\n"
    "  stp x21, x22, [x0, #21*8]\n"
    "  stp x23, x24, [x0, #23*8]\n"
    "  stp x25, x26, [x0, #25*8]\n"
    "  stp x27, x28, [x0, #27*8]\n"
    "  str x29, [x0, #29*8]\n"
    "  mov x9, sp\n"
    "  stp x9, x30, [x0, #31*8]\n"
    "  movz x9, #0xBFF8, lsl #16\n"
    "  movk x9, #1, lsl #32\n"
    "  str x9, [x0, #33*8]\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size cs_regs_of_caller, .-cs_regs_of_caller\n");
_Static_assert(CS_X19 == 19 && CS_FP == 29 && CS_SP == 31 && CS_IP == 32, "regs");
_Static_assert(offsetof(struct cs_regs, known) == 33 * 8, "regs");
_Static_assert(CS_REGS_PRESERVED == 0x1BFF80000, "regs");
