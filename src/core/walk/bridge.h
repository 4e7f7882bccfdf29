// SPDX-License-Identifier: MIT
// Private to room walk: ways across code that cannot be unwound by rules. Signal-safe: yes.
#ifndef CS_WALK_BRIDGE_H
#define CS_WALK_BRIDGE_H

#include "walk/walk.h"

// The explicit Frame chain (walk/bridge.c): registers of the managed frame that the innermost Frame
// above `walk->regs` leads to. False: there is none that can be trusted.
CS_ISLAND bool cs_bridge_explicit(struct cs_walk *walk, struct cs_regs *regs, bool *exact);

// Interrupted code, reached through the kernel's signal frame or through the one that the runtime
// fakes for its handler of a fault, which has lost some registers: if it was a fault for whose
// exception there is a FaultingExceptionFrame by now, the registers are taken from there.
CS_ISLAND void cs_bridge_fault(struct cs_walk *walk, struct cs_regs *regs);

// A stub, or code that nothing is known of, at an exact ip (walk/stub.c): finds its caller.
CS_ISLAND enum cs_stop cs_bridge_stub(const struct cs_walk *walk, struct cs_regs *regs);

// The same while libraries come and go, so that code in no map may be anybody's: the call before
// the address on top of the stack must itself lead to where the code runs.
CS_ISLAND enum cs_stop cs_bridge_called(const struct cs_walk *walk, struct cs_regs *regs);

// Native code without a rule at an exact ip, if its bytes say where its caller is: a PLT entry (lld
// writes no rule for them), a return, the C library's clone.
CS_ISLAND enum cs_stop cs_bridge_unruled(const struct cs_walk *walk, struct cs_regs *regs);

// Is `ip` an address that a call returns to, in known code? (walk/stub.c)
CS_ISLAND bool cs_is_return_address(const struct cs_world *world, uint64_t ip);

#endif
