// SPDX-License-Identifier: MIT
// The registers that a signal has interrupted. Signal-safe: yes.
#include "signal/ucontext.h"

#include <ucontext.h>

// The kernel's frame is a siginfo and a ucontext, and the handler returns to the trampoline with sp
// at its beginning.
enum { SIGINFO_BYTES = 128 };

CS_ISLAND void cs_regs_from_ucontext(struct cs_regs *regs, const void *ucontext) {
  const mcontext_t *from = &((const ucontext_t *)ucontext)->uc_mcontext;
  for (unsigned i = 0; i <= CS_LR; i++) regs->r[i] = from->regs[i];
  regs->r[CS_SP] = from->sp;
  regs->r[CS_IP] = from->pc;
  regs->known = CS_REGS_ALL;
}

CS_ISLAND uint64_t cs_ucontext_sp(const void *ucontext) {
  return ((const ucontext_t *)ucontext)->uc_mcontext.sp;
}

CS_ISLAND uint64_t cs_ucontext_ip(const void *ucontext) {
  return ((const ucontext_t *)ucontext)->uc_mcontext.pc;
}

CS_ISLAND void *cs_ucontext_at_trampoline(const struct cs_stack *stack, uint64_t sp) {
  uint64_t at = sp + SIGINFO_BYTES;
  bool holds = (sp & 7) == 0 && cs_stack_holds(stack, at, offsetof(ucontext_t, uc_mcontext.pstate));
  return holds ? (void *)(uintptr_t)at : NULL;
}
