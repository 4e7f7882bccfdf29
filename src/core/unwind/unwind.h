// SPDX-License-Identifier: MIT
// unwind: one step, from a frame's registers to its caller's. Signal-safe: yes, all of it.
#pragma once

#include "base/regs.h"
#include "codemap/codemap.h"

// The memory of a thread's stack. A walk may start on the alternate signal stack.
struct cs_stack {
  uint64_t lo, hi;          // the thread's own stack, [lo, hi)
  uint64_t alt_lo, alt_hi;  // its alternate signal stack, 0 if none
};

CS_ISLAND static inline bool cs_stack_holds(const struct cs_stack *s, uint64_t addr, uint64_t len) {
  return (addr >= s->lo && addr <= s->hi && len <= s->hi - addr) ||
         (addr >= s->alt_lo && addr <= s->alt_hi && len <= s->alt_hi - addr);
}

// Reads a word of the stack; returns false if the address is not on the stack.
CS_ISLAND static inline bool cs_stack_u64(const struct cs_mem *mem, const struct cs_stack *s,
                                          uint64_t addr, uint64_t *out) {
  return cs_stack_holds(s, addr, 8) && cs_mem_u64(mem, addr, out);
}

// Steps over a managed frame by its unwind data, in the architecture's format (unwind/managed.c).
// `exact`: the code was interrupted at the ip (a leaf, or below a signal frame), so prologs and
// epilogs matter; otherwise the ip is a return address. On success `regs` are the caller's, and
// `regs->known` excludes the registers that a call does not preserve. On failure `regs` are
// unchanged.
CS_ISLAND enum cs_stop cs_unwind_managed(const struct cs_world *world, const struct cs_code *code,
                                         const struct cs_stack *stack, bool exact,
                                         struct cs_regs *regs);

// Steps over a native frame by the .eh_frame rows of its image (unwind/native.c). *signal_frame is
// set for the kernel's signal trampoline: all registers of the caller are then known, as the signal
// interrupted them, and its ip is exact. It is also set for the frame that the runtime fakes
// between its fault handler and the fault: there the ip is exact, but not all registers are known.
// A function whose return address is undefined is the stack's base: CS_STOP_BASE.
CS_ISLAND enum cs_stop cs_unwind_native(const struct cs_world *world, const struct cs_code *code,
                                        const struct cs_stack *stack, bool exact,
                                        struct cs_regs *regs, bool *signal_frame);

// For native code without a rule at an exact ip: some hand-written helpers of libcoreclr describe
// their epilogs wrongly, and those rows have been dropped. If the code at the ip is the rest of an
// epilog, up to its ret, carries it out and returns true (unwind/epilog.c).
CS_ISLAND bool cs_unwind_native_epilog(const struct cs_world *world, const struct cs_code *code,
                                       const struct cs_stack *stack, struct cs_regs *regs);
