// SPDX-License-Identifier: MIT
// Enter, leave and tailcall hooks in the JIT's fast form. The JIT calls them without saving
// anything for us: enter with the ID in r14 and the caller's sp in r15, leave and tailcall with
// them in rdi and rsi; every register but r10 and r11 belongs to the managed code (arguments at
// enter, results at leave). So all that a C function may change is saved here; the C functions are
// compiled for general registers only, which leaves xmm and above as they are. The unwind data is
// exact at every instruction: the walks under test come through here.
  .text

  .macro HOOK name, target, id, sp
  .globl \name
  .hidden \name
  .type \name, @function
\name:
  .cfi_startproc
  pushfq
  .cfi_adjust_cfa_offset 8
  .irp reg, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11, rbx
  push %\reg
  .cfi_adjust_cfa_offset 8
  .endr
  .cfi_rel_offset rbx, 0
  mov %rsp, %rbx
  .cfi_def_cfa_register rbx
  mov %\sp, %rsi
  mov %\id, %rdi
  and $-16, %rsp
  cld
  call \target
  mov %rbx, %rsp
  .cfi_def_cfa_register rsp
  .cfi_remember_state
  pop %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore rbx
  .irp reg, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax
  pop %\reg
  .cfi_adjust_cfa_offset -8
  .endr
  popfq
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size \name, .-\name
  .endm

// The first hook of a thread makes its shadow by ordinary C, which may change xmm registers.
  .globl shadow_make_saved
  .hidden shadow_make_saved
  .type shadow_make_saved, @function
shadow_make_saved:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset rbp, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register rbp
  sub $4096, %rsp
  and $-64, %rsp
  // x87, SSE, AVX and AVX-512 state; XSAVE wants the 64 bytes of its header cleared.
  movq $0, 512(%rsp)
  movq $0, 520(%rsp)
  movq $0, 528(%rsp)
  movq $0, 536(%rsp)
  movq $0, 544(%rsp)
  movq $0, 552(%rsp)
  movq $0, 560(%rsp)
  movq $0, 568(%rsp)
  mov $0xe7, %eax
  xor %edx, %edx
  xsave (%rsp)
  call shadow_make
  mov $0xe7, %eax
  xor %edx, %edx
  xrstor (%rsp)
  leave
  .cfi_def_cfa rsp, 8
  ret
  .cfi_endproc
  .size shadow_make_saved, .-shadow_make_saved

// For leave and tailcall the order of the two moves matters: rsi is read before it is written, and
// rdi is written last. (mov %rsi,%rsi and mov %rdi,%rdi are what is left of them.)
  HOOK shadow_enter_stub, shadow_enter, r14, r15
  HOOK shadow_leave_stub, shadow_leave, rdi, rsi
  HOOK shadow_tailcall_stub, shadow_tailcall, rdi, rsi
  .section .note.GNU-stack,"",@progbits
