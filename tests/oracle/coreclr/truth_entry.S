// SPDX-License-Identifier: MIT
// The target of a P/Invoke, which saves the registers with which it was entered: those of its
// caller at that call. The caller is managed code, so these are the true values for its CONTEXT.
// struct entry { rbx, rsp, rbp, r12, r13, r14, r15, rip }: the order of enum stack_reg.
  .text
  .globl oracle_registers
  .type oracle_registers, @function
oracle_registers:
  .cfi_startproc
  sub $72, %rsp
  .cfi_adjust_cfa_offset 72
  mov %rbx, (%rsp)
  lea 80(%rsp), %rax
  mov %rax, 8(%rsp)
  mov %rbp, 16(%rsp)
  mov %r12, 24(%rsp)
  mov %r13, 32(%rsp)
  mov %r14, 40(%rsp)
  mov %r15, 48(%rsp)
  mov 72(%rsp), %rax
  mov %rax, 56(%rsp)
  mov %rsp, %rdi
  call truth_compare
  add $72, %rsp
  .cfi_adjust_cfa_offset -72
  ret
  .cfi_endproc
  .size oracle_registers, .-oracle_registers
  .section .note.GNU-stack, "", @progbits
