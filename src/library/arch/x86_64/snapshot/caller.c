// SPDX-License-Identifier: MIT
// The registers of a function's caller. Async-signal-safe.
#include "snapshot/self.h"

// In assembly, since no C function knows its caller's registers: the callee-saved ones are still
// untouched, the return address is at the top of the stack, and the caller's sp above it.
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl cs_regs_of_caller\n"
    ".hidden cs_regs_of_caller\n"
    ".type cs_regs_of_caller, @function\n"
    "cs_regs_of_caller:\n"
    "  .cfi_startproc\n"
    "  movq %rbx, 3*8(%rdi)\n"
    "  leaq 8(%rsp), %rax\n"
    "  movq %rax, 4*8(%rdi)\n"
    "  movq %rbp, 5*8(%rdi)\n"
    "  movq %r12, 12*8(%rdi)\n"
    "  movq %r13, 13*8(%rdi)\n"
    "  movq %r14, 14*8(%rdi)\n"
    "  movq %r15, 15*8(%rdi)\n"
    "  movq (%rsp), %rax\n"
    "  movq %rax, 16*8(%rdi)\n"
    "  movl $0x1f038, 17*8(%rdi)\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size cs_regs_of_caller, .-cs_regs_of_caller\n");
_Static_assert(CS_RBX == 3 && CS_RSP == 4 && CS_RBP == 5 && CS_R12 == 12 && CS_RIP == 16, "regs");
_Static_assert(offsetof(struct cs_regs, known) == 17 * 8, "regs");
_Static_assert(CS_REGS_PRESERVED == 0x1f038, "regs");
