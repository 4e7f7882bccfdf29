// SPDX-License-Identifier: MIT
// A frame's registers as a CONTEXT of the profiling API. Pure; any thread.
//
// Invariant: only known registers are written; ContextFlags are set as by CoreCLR's own walk.
#include "snapshot/context.h"

#include <string.h>

// The registers of a walk are in the order of CONTEXT: x0 to x28, fp, lr, sp, pc.
enum { REGISTERS = offsetof(ARM64_CONTEXT, X) };
_Static_assert(offsetof(ARM64_CONTEXT, Pc) == REGISTERS + CS_IP * 8, "the order of CONTEXT");

void cs_context_of_regs(BYTE *context, size_t size, const struct cs_regs *regs, uint32_t flags) {
  memset(context, 0, size);
  for (unsigned i = 0; i < CS_REG_COUNT; i++) {
    if (regs->known & CS_REG_BIT(i)) memcpy(context + REGISTERS + i * 8, &regs->r[i], 8);
  }
  memcpy(context + offsetof(ARM64_CONTEXT, ContextFlags), &flags, sizeof flags);
}

void cs_context_read(const BYTE *context, struct cs_regs *regs) {
  memcpy(regs->r, context + REGISTERS, sizeof regs->r);
  regs->known = CS_REGS_ALL;
}

uint32_t cs_context_flags(const BYTE *context) {
  uint32_t flags;
  memcpy(&flags, context + offsetof(ARM64_CONTEXT, ContextFlags), sizeof flags);
  return flags;
}

void cs_context_set_ip(BYTE *context, uint64_t ip) {
  memcpy(context + offsetof(ARM64_CONTEXT, Pc), &ip, sizeof ip);
}

uint32_t cs_context_general(void) {
  return CONTEXT_ARM64_CONTROL | CONTEXT_ARM64_INTEGER;
}

uint32_t cs_context_unwound(uint32_t flags) {
  return flags | CONTEXT_UNWOUND_TO_CALL;
}
