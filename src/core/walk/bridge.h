// SPDX-License-Identifier: MIT
// Private to the component: ways across code that no rule can unwind. Signal-safe: yes.
#pragma once

#include "walk/walk.h"

// Follows the chain of explicit Frames (walk/bridge.c), and finds the registers of the managed
// frame to which the innermost Frame above `walk->regs` leads. Returns false if no Frame can be
// trusted.
CS_ISLAND bool cs_bridge_explicit(struct cs_walk *walk, struct cs_regs *regs, bool *exact);

// Corrects the registers of interrupted code that was reached through the kernel's signal frame, or
// through the frame that the runtime fakes for its fault handler, which has lost some of them. If
// the code was interrupted by a fault for which there is a FaultingExceptionFrame, the registers
// are taken from that.
CS_ISLAND void cs_bridge_fault(struct cs_walk *walk, struct cs_regs *regs);

// Finds the caller of a stub, or of unknown code, at an exact ip (walk/stub.c).
CS_ISLAND enum cs_stop cs_bridge_stub(const struct cs_walk *walk, struct cs_regs *regs);

// The same while libraries are being loaded or unloaded, when unknown code may be anything: the
// call before the address on top of the stack must lead to this very code.
CS_ISLAND enum cs_stop cs_bridge_called_stub(const struct cs_walk *walk, struct cs_regs *regs);

// Finds the caller of native code without a rule at an exact ip, if its bytes show where it is: a
// PLT entry (lld writes no rule for them), a return, or the C library's clone.
CS_ISLAND enum cs_stop cs_bridge_unruled(const struct cs_walk *walk, struct cs_regs *regs);

// Returns whether `ip` is in known code and follows a call (walk/stub.c).
CS_ISLAND bool cs_is_return_address(const struct cs_world *world, uint64_t ip);

// ReadyToRun code has a helper fill in its Frame, whose return address `ip` is then that of the
// call to the helper. Returns the return address of the call that is in progress, where the call
// site has `sp` (walk/stub.c).
CS_ISLAND uint64_t cs_bridge_call_in_progress(const struct cs_walk *walk, uint64_t ip, uint64_t sp);

CS_ISLAND static inline bool cs_bridge_get(const struct cs_walk *walk, uint64_t addr,
                                           uint64_t *out) {
  if (cs_stack_holds(&walk->stack, addr, 8)) return cs_mem_u64(&walk->world->mem, addr, out);
  return cs_mem_read_guarded(&walk->world->mem, addr, out, 8);
}
CS_ISLAND static inline void cs_bridge_set(struct cs_regs *regs, unsigned reg, uint64_t value) {
  regs->r[reg] = value;
  regs->known |= CS_REG_BIT(reg);
}

// The following depend on the architecture (walk/context.c). These read the registers of a CONTEXT,
// its ContextFlags, and the block in which the runtime's stubs save the callee-saved registers.
CS_ISLAND bool cs_bridge_context(const struct cs_walk *walk, uint64_t context,
                                 struct cs_regs *regs);
CS_ISLAND bool cs_bridge_context_flags(const struct cs_walk *walk, uint64_t context,
                                       uint32_t *flags);
CS_ISLAND bool cs_bridge_callee_saved(const struct cs_walk *walk, uint64_t block,
                                      struct cs_regs *regs);
// Returns whether `slot` held the return address by which the walk has stepped to the caller's
// `regs`, or that of the method that has returned to OnHijackTripThread.
CS_ISLAND bool cs_bridge_is_slot(const struct cs_walk *walk, const struct cs_regs *regs,
                                 uint64_t slot);
// Returns whether `fault` describes a fault of the instruction at `regs`. *in_caller is set if a
// leaf helper has faulted there and `fault` describes the call to it.
CS_ISLAND bool cs_bridge_is_fault_at(const struct cs_walk *walk, const struct cs_regs *fault,
                                     const struct cs_regs *regs, bool *in_caller);
