// SPDX-License-Identifier: MIT
// The registers that a signal has interrupted. Signal-safe: yes.
#include "signal/ucontext.h"

#include <ucontext.h>

CS_ISLAND void cs_regs_from_ucontext(struct cs_regs *regs, const void *ucontext) {
  const greg_t *from = ((const ucontext_t *)ucontext)->uc_mcontext.gregs;
  static const uint8_t at[CS_REG_COUNT] = {
      [CS_RAX] = REG_RAX, [CS_RCX] = REG_RCX, [CS_RDX] = REG_RDX, [CS_RBX] = REG_RBX,
      [CS_RSP] = REG_RSP, [CS_RBP] = REG_RBP, [CS_RSI] = REG_RSI, [CS_RDI] = REG_RDI,
      [CS_R8] = REG_R8,   [CS_R9] = REG_R9,   [CS_R10] = REG_R10, [CS_R11] = REG_R11,
      [CS_R12] = REG_R12, [CS_R13] = REG_R13, [CS_R14] = REG_R14, [CS_R15] = REG_R15,
      [CS_RIP] = REG_RIP,
  };
  for (unsigned i = 0; i < CS_REG_COUNT; i++) regs->r[i] = (uint64_t)from[at[i]];
  regs->known = CS_REGS_ALL;
}

CS_ISLAND uint64_t cs_ucontext_sp(const void *ucontext) {
  return (uint64_t)((const ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RSP];
}

CS_ISLAND uint64_t cs_ucontext_ip(const void *ucontext) {
  return (uint64_t)((const ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RIP];
}

// The kernel's frame is a return address, which the handler's return has popped, and a ucontext.
CS_ISLAND void *cs_ucontext_at_trampoline(const struct cs_stack *stack, uint64_t sp) {
  bool holds = (sp & 7) == 0 && cs_stack_holds(stack, sp, offsetof(ucontext_t, uc_sigmask));
  return holds ? (void *)(uintptr_t)sp : NULL;
}
