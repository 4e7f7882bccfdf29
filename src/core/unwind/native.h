// SPDX-License-Identifier: MIT
// Private to the component: shared by the step by a row (native.c) and the architecture's steps
// without one (special.c). Signal-safe: yes.
#pragma once

#include "images/images.h"
#include "unwind/unwind.h"

struct cs_native_step {
  const struct cs_mem *mem;
  const struct cs_stack *stack;
  const struct cs_regs *from;  // this frame's
  uint64_t cfa;
};

CS_ISLAND static inline bool cs_native_knows(const struct cs_regs *regs, unsigned reg) {
  return (regs->known & CS_REG_BIT(reg)) != 0;
}

// Reads words that may be on the stack or elsewhere.
CS_ISLAND static inline bool cs_native_read_block(const struct cs_mem *mem,
                                                  const struct cs_stack *stack, uint64_t at,
                                                  uint64_t *words, size_t bytes) {
  return (at & 7) == 0 && cs_stack_holds(stack, at, bytes)
             ? cs_mem_read(mem, at, words, bytes)
             : cs_mem_read_guarded(mem, at, words, bytes);
}

// Returns whether the code at `ip`, for which there is no rule, is a C library's signal trampoline.
CS_ISLAND bool cs_native_is_trampoline(const struct cs_mem *mem, uint64_t ip);
// Restores all registers, as the signal interrupted them.
CS_ISLAND enum cs_stop cs_native_step_signal(const struct cs_mem *mem, const struct cs_stack *stack,
                                             struct cs_regs *regs);
// Restore the registers of the ucontext with which setcontext is about to continue, and of the
// CONTEXT with which RtlRestoreContext is about to continue.
CS_ISLAND enum cs_stop cs_native_step_ucontext(const struct cs_mem *mem,
                                               const struct cs_stack *stack, uint64_t ucontext,
                                               struct cs_regs *regs);
CS_ISLAND enum cs_stop cs_native_step_context(const struct cs_mem *mem,
                                              const struct cs_stack *stack, uint64_t context,
                                              struct cs_regs *regs);
// Steps to the frame that catches an exception, when libgcc is about to continue there.
CS_ISLAND enum cs_stop cs_native_step_eh_return(const struct cs_native_step *s,
                                                struct cs_regs *regs);
// Returns the CFA in a PLT entry (CS_CFA_PLT).
CS_ISLAND uint64_t cs_plt_cfa(const struct cs_regs *regs, const struct cs_cfi_rule *rule);
