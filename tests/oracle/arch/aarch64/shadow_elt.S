// SPDX-License-Identifier: MIT
// Enter, leave and tailcall hooks in the JIT's fast form: the JIT calls them with the ID in x10 and
// the caller's sp in x11; x0 to x8, fp and q0 to q7 belong to the managed code (arguments at enter,
// results at leave). The C functions are compiled for general registers only, which leaves the
// vector registers as they are. The unwind data is exact at every instruction: the walks under test
// come through here.
  .text

  .macro HOOK name, target
  .globl \name
  .hidden \name
  .type \name, %function
\name:
  .cfi_startproc
  stp x29, x30, [sp, -96]!
  .cfi_def_cfa_offset 96
  .cfi_offset x29, -96
  .cfi_offset x30, -88
  stp x0, x1, [sp, 16]
  stp x2, x3, [sp, 32]
  stp x4, x5, [sp, 48]
  stp x6, x7, [sp, 64]
  str x8, [sp, 80]
  mov x0, x10
  mov x1, x11
  bl \target
  ldp x0, x1, [sp, 16]
  ldp x2, x3, [sp, 32]
  ldp x4, x5, [sp, 48]
  ldp x6, x7, [sp, 64]
  ldr x8, [sp, 80]
  ldp x29, x30, [sp], 96
  .cfi_def_cfa_offset 0
  .cfi_restore x29
  .cfi_restore x30
  ret
  .cfi_endproc
  .size \name, .-\name
  .endm

// The first hook of a thread makes its shadow by ordinary C, which may change vector registers.
  .globl shadow_make_saved
  .hidden shadow_make_saved
  .type shadow_make_saved, %function
shadow_make_saved:
  .cfi_startproc
  stp x29, x30, [sp, -144]!
  .cfi_def_cfa_offset 144
  .cfi_offset x29, -144
  .cfi_offset x30, -136
  stp q0, q1, [sp, 16]
  stp q2, q3, [sp, 48]
  stp q4, q5, [sp, 80]
  stp q6, q7, [sp, 112]
  bl shadow_make
  ldp q0, q1, [sp, 16]
  ldp q2, q3, [sp, 48]
  ldp q4, q5, [sp, 80]
  ldp q6, q7, [sp, 112]
  ldp x29, x30, [sp], 144
  .cfi_def_cfa_offset 0
  .cfi_restore x29
  .cfi_restore x30
  ret
  .cfi_endproc
  .size shadow_make_saved, .-shadow_make_saved

  HOOK shadow_enter_stub, shadow_enter
  HOOK shadow_leave_stub, shadow_leave
  HOOK shadow_tailcall_stub, shadow_tailcall
  .section .note.GNU-stack,"",%progbits
