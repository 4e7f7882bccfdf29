// SPDX-License-Identifier: MIT
// Private to the room: ways across code that no rule can unwind. Signal-safe: yes.
#ifndef CS_WALK_BRIDGE_H
#define CS_WALK_BRIDGE_H

#include "walk/walk.h"

// Follows the chain of explicit Frames (walk/bridge.c): finds the registers of the managed frame
// that the innermost Frame above `walk->regs` leads to. Returns false if no Frame can be trusted.
CS_ISLAND bool cs_bridge_explicit(struct cs_walk *walk, struct cs_regs *regs, bool *exact);

// Corrects `regs` of interrupted code that was reached through the kernel's signal frame, or
// through the frame that the runtime fakes for its fault handler, which has lost some registers: if
// the interruption was a fault for which a FaultingExceptionFrame exists, takes the registers from
// there.
CS_ISLAND void cs_bridge_fault(struct cs_walk *walk, struct cs_regs *regs);

// Finds the caller of a stub, or of unknown code, at an exact ip (walk/stub.c).
CS_ISLAND enum cs_stop cs_bridge_stub(const struct cs_walk *walk, struct cs_regs *regs);

// The same while libraries are being loaded or unloaded, so that unknown code may be anything: the
// call before the address on top of the stack must itself lead to the code.
CS_ISLAND enum cs_stop cs_bridge_called(const struct cs_walk *walk, struct cs_regs *regs);

// Finds the caller of native code without a rule at an exact ip, if its bytes show where it is: a
// PLT entry (lld writes no rule for them), a return, or the C library's clone.
CS_ISLAND enum cs_stop cs_bridge_unruled(const struct cs_walk *walk, struct cs_regs *regs);

// Returns whether `ip` is in known code and follows a call (walk/stub.c).
CS_ISLAND bool cs_is_return_address(const struct cs_world *world, uint64_t ip);

#endif
