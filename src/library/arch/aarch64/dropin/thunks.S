// SPDX-License-Identifier: MIT
// The code in the slots of wrapped objects' vtables: thunk n replaces the wrapper in the first
// argument with the target of its slot n, and jumps to slot n of the target's own vtable. The
// stack, the other arguments and the return address do not change, so a thunk works for any
// signature, and no frame of it is on the stack while the real method runs. The offset is that of
// struct cs_wrapped (wrap.h), the stride that of wrap.c.
  .text
  .p2align 5
  .globl cs_thunks
  .hidden cs_thunks
  .type cs_thunks, %function
cs_thunks:
  .cfi_startproc
  .set slot, 0
  .rept 256
  .p2align 5
  ldr x0, [x0, 8 + 8 * slot]
  ldr x16, [x0]
  ldr x16, [x16, 8 * slot]
  br x16
  .set slot, slot + 1
  .endr
  .cfi_endproc
  .size cs_thunks, . - cs_thunks
  .section .note.GNU-stack, "", %progbits
