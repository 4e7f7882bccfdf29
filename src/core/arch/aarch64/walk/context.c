// SPDX-License-Identifier: MIT
// The registers in an explicit Frame: a CONTEXT, or those that the runtime's stubs have saved.
// Also, how a Frame describes a fault. Signal-safe: yes.
#include "walk/bridge.h"

// The parts of the ARM64 CONTEXT that a walk needs: ContextFlags (32 bits) at its start, and x0 to
// x28, fp, lr, sp and pc.
enum { CONTEXT_REGS = 8 };

CS_ISLAND bool cs_bridge_context(const struct cs_walk *walk, uint64_t context,
                                 struct cs_regs *regs) {
  uint64_t value;
  for (unsigned i = 0; i < CS_PRESERVED_COUNT; i++) {
    unsigned reg = cs_preserved_register[i];
    if (!cs_bridge_get(walk, context + CONTEXT_REGS + reg * 8, &value)) return false;
    cs_bridge_set(regs, reg, value);
  }
  // A leaf's return address.
  if (!cs_bridge_get(walk, context + CONTEXT_REGS + CS_LR * 8, &value)) return false;
  cs_bridge_set(regs, CS_LR, value);
  regs->r[CS_IP] = cs_ip_of(regs->r[CS_IP]);
  return true;
}

CS_ISLAND bool cs_bridge_context_flags(const struct cs_walk *walk, uint64_t context,
                                       uint32_t *flags) {
  uint64_t word;
  if (!cs_bridge_get(walk, context, &word)) return false;
  *flags = (uint32_t)word;
  return true;
}

CS_ISLAND bool cs_bridge_callee_saved(const struct cs_walk *walk, uint64_t block,
                                      struct cs_regs *regs) {
  const struct cs_callee_saved *at = &walk->world->layout.callee_saved;
  uint64_t value;
  if (!cs_bridge_get(walk, block + at->fp, &value)) return false;
  cs_bridge_set(regs, CS_FP, value);
  for (unsigned i = 0; i < CS_COUNT(at->x); i++) {
    if (!cs_bridge_get(walk, block + at->x[i], &value)) return false;
    cs_bridge_set(regs, CS_X19 + i, value);
  }
  return true;
}

// The runtime attributes a fault in a leaf helper (a write barrier) to the helper's caller: it sets
// pc to lr, and keeps lr.
CS_ISLAND bool cs_bridge_is_fault_at(const struct cs_walk *walk, const struct cs_regs *fault,
                                     const struct cs_regs *regs, bool *in_caller) {
  (void)walk;
  if (fault->r[CS_SP] != regs->r[CS_SP]) return false;
  *in_caller = fault->r[CS_IP] != regs->r[CS_IP];
  return !*in_caller || cs_ip_of(fault->r[CS_LR]) == fault->r[CS_IP];
}

// A frame may keep its return address anywhere in it. OnHijackTripThread, to which the method
// returns, has popped that frame, and has its own address as return address from its first
// instruction on, until the runtime has given it the true one.
CS_ISLAND bool cs_bridge_is_slot(const struct cs_walk *walk, const struct cs_regs *regs,
                                 uint64_t slot) {
  enum { LONGEST_TRIP = 512 };  // bytes of its code
  uint64_t ip = walk->regs.r[CS_IP], caller = regs->r[CS_IP];
  if (slot >= regs->r[CS_SP]) return false;
  return slot >= walk->regs.r[CS_SP] || (ip >= caller && ip - caller < LONGEST_TRIP);
}
