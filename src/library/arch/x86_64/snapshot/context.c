// SPDX-License-Identifier: MIT
// A frame's registers as a CONTEXT of the profiling API. Pure; any thread.
//
// Invariant: only known registers are written; ContextFlags are set as by CoreCLR's own walk.
#include "snapshot/context.h"

#include <string.h>

// Offsets of the general registers in CONTEXT, in the order of enum cs_reg.
static const uint16_t offset_of[CS_REG_COUNT] = {
    [CS_RAX] = offsetof(AMD64_CONTEXT, Rax), [CS_RCX] = offsetof(AMD64_CONTEXT, Rcx),
    [CS_RDX] = offsetof(AMD64_CONTEXT, Rdx), [CS_RBX] = offsetof(AMD64_CONTEXT, Rbx),
    [CS_RSP] = offsetof(AMD64_CONTEXT, Rsp), [CS_RBP] = offsetof(AMD64_CONTEXT, Rbp),
    [CS_RSI] = offsetof(AMD64_CONTEXT, Rsi), [CS_RDI] = offsetof(AMD64_CONTEXT, Rdi),
    [CS_R8] = offsetof(AMD64_CONTEXT, R8),   [CS_R9] = offsetof(AMD64_CONTEXT, R9),
    [CS_R10] = offsetof(AMD64_CONTEXT, R10), [CS_R11] = offsetof(AMD64_CONTEXT, R11),
    [CS_R12] = offsetof(AMD64_CONTEXT, R12), [CS_R13] = offsetof(AMD64_CONTEXT, R13),
    [CS_R14] = offsetof(AMD64_CONTEXT, R14), [CS_R15] = offsetof(AMD64_CONTEXT, R15),
    [CS_RIP] = offsetof(AMD64_CONTEXT, Rip),
};

void cs_context_of_regs(BYTE *context, size_t size, const struct cs_regs *regs, uint32_t flags) {
  memset(context, 0, size);
  for (unsigned i = 0; i < CS_REG_COUNT; i++) {
    if (regs->known & CS_REG_BIT(i)) memcpy(context + offset_of[i], &regs->r[i], 8);
  }
  memcpy(context + offsetof(AMD64_CONTEXT, ContextFlags), &flags, sizeof flags);
}

void cs_context_read(const BYTE *context, struct cs_regs *regs) {
  for (unsigned i = 0; i < CS_REG_COUNT; i++) memcpy(&regs->r[i], context + offset_of[i], 8);
  regs->known = CS_REGS_ALL;
}

uint32_t cs_context_flags(const BYTE *context) {
  uint32_t flags;
  memcpy(&flags, context + offsetof(AMD64_CONTEXT, ContextFlags), sizeof flags);
  return flags;
}

void cs_context_set_ip(BYTE *context, uint64_t ip) {
  memcpy(context + offsetof(AMD64_CONTEXT, Rip), &ip, sizeof ip);
}

uint32_t cs_context_general(void) {
  return CONTEXT_AMD64_CONTROL | CONTEXT_AMD64_INTEGER;
}

uint32_t cs_context_unwound(uint32_t flags) {
  return flags;
}
