// SPDX-License-Identifier: MIT
// The vtables of wrapped objects: thunk n puts the object that the call is for in the place of the
// wrapper, and goes on in slot n of that object's own vtable. The stack, the other arguments and
// the return address stay as they are, so a thunk serves any signature, and is gone from the stack
// when the real method runs. struct cs_wrapped of wrap.h knows the offset; cs_thunk the stride.
  .text
  .p2align 5
  .globl cs_thunks
  .hidden cs_thunks
  .type cs_thunks, @function
cs_thunks:
  .cfi_startproc
  .set slot, 0
  .rept 256
  .p2align 5
  mov 8 + 8 * slot(%rdi), %rdi
  mov (%rdi), %r11
  jmp *8 * slot(%r11)
  .set slot, slot + 1
  .endr
  .cfi_endproc
  .size cs_thunks, . - cs_thunks
  .section .note.GNU-stack, "", @progbits
