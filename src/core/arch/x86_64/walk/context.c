// SPDX-License-Identifier: MIT
// The registers in an explicit Frame: a CONTEXT, or those that the runtime's stubs have saved.
// Also, how a Frame describes a fault. Signal-safe: yes.
#include "walk/bridge.h"

// The parts of the AMD64 CONTEXT that a walk needs.
enum {
  CONTEXT_FLAGS = 48,  // 32 bits
  CONTEXT_RBX = 144,
  CONTEXT_RSP = 152,
  CONTEXT_RBP = 160,
  CONTEXT_R12 = 216,
  CONTEXT_R13 = 224,
  CONTEXT_R14 = 232,
  CONTEXT_R15 = 240,
  CONTEXT_RIP = 248,
};

CS_ISLAND bool cs_bridge_context(const struct cs_walk *walk, uint64_t context,
                                 struct cs_regs *regs) {
  uint64_t value;
  static const uint16_t at[] = {CONTEXT_RIP, CONTEXT_RSP, CONTEXT_RBP, CONTEXT_RBX,
                                CONTEXT_R12, CONTEXT_R13, CONTEXT_R14, CONTEXT_R15};
  static const uint8_t reg[] = {CS_RIP, CS_RSP, CS_RBP, CS_RBX, CS_R12, CS_R13, CS_R14, CS_R15};
  for (unsigned i = 0; i < CS_COUNT(reg); i++) {
    if (!cs_bridge_get(walk, context + at[i], &value)) return false;
    cs_bridge_set(regs, reg[i], value);
  }
  return true;
}

CS_ISLAND bool cs_bridge_callee_saved(const struct cs_walk *walk, uint64_t block,
                                      struct cs_regs *regs) {
  const struct cs_layout *l = &walk->world->layout;
  const struct {
    uint8_t reg;
    uint32_t off;
  } saved[] = {
      {CS_RBX, l->callee_saved.rbx}, {CS_RBP, l->callee_saved.rbp}, {CS_R12, l->callee_saved.r12},
      {CS_R13, l->callee_saved.r13}, {CS_R14, l->callee_saved.r14}, {CS_R15, l->callee_saved.r15},
  };
  for (unsigned i = 0; i < CS_COUNT(saved); i++) {
    uint64_t value;
    if (!cs_bridge_get(walk, block + saved[i].off, &value)) return false;
    cs_bridge_set(regs, saved[i].reg, value);
  }
  return true;
}

CS_ISLAND bool cs_bridge_context_flags(const struct cs_walk *walk, uint64_t context,
                                       uint32_t *flags) {
  uint64_t word;
  if (!cs_bridge_get(walk, context + CONTEXT_FLAGS, &word)) return false;
  *flags = (uint32_t)word;
  return true;
}

// The runtime attributes a fault in a leaf helper (a write barrier, a dispatch stub) to the
// helper's caller, and has popped the return address.
CS_ISLAND bool cs_bridge_is_fault_at(const struct cs_walk *walk, const struct cs_regs *fault,
                                     const struct cs_regs *regs, bool *in_caller) {
  uint64_t word, sp = regs->r[CS_RSP];
  *in_caller = fault->r[CS_RSP] == sp + 8;
  if (!*in_caller) return fault->r[CS_RSP] == sp && fault->r[CS_RIP] == regs->r[CS_RIP];
  return cs_stack_u64(&walk->world->mem, &walk->stack, sp, &word) && word == fault->r[CS_RIP];
}

CS_ISLAND bool cs_bridge_is_slot(const struct cs_walk *walk, const struct cs_regs *regs,
                                 uint64_t slot) {
  (void)walk;
  return slot == regs->r[CS_RSP] - 8;
}
