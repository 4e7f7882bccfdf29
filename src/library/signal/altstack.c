// SPDX-License-Identifier: MIT
// The handler's part of alternate signal stacks. Signal-safe: yes; on the thread itself.
//
// Invariant: `ready` is set only when no return from a handler can bring back the old stack. The
// kernel restores the alternate stack from the signal frame, so the new one is written there: into
// this signal's frame, and into those of the enclosing handlers, such as the one in which the
// runtime stops a thread.
#include "signal/altstack.h"

#include <signal.h>
#include <ucontext.h>

#include "signal/ucontext.h"
#include "walk/walk.h"

CS_ISLAND void cs_altstack_of(const void *ucontext, uint64_t *lo, uint64_t *hi) {
  const stack_t *stack = &((const ucontext_t *)ucontext)->uc_stack;
  bool none = (stack->ss_flags & SS_DISABLE) != 0;
  *lo = none ? 0 : (uint64_t)(uintptr_t)stack->ss_sp;
  *hi = none ? 0 : *lo + stack->ss_size;
}

CS_ISLAND static void write_to(const struct cs_altstack *ours, ucontext_t *uc) {
  uc->uc_stack.ss_sp = (void *)(uintptr_t)ours->sp;
  uc->uc_stack.ss_size = ours->size;
  uc->uc_stack.ss_flags = 0;
}

// sigreturn installs what the handler writes into its ucontext, except while the alternate stack is
// in use: then the kernel refuses without an error.
CS_ISLAND void cs_altstack_install(struct cs_altstack *ours, void *ucontext) {
  ucontext_t *uc = ucontext;
  uint64_t lo, hi, sp = cs_ucontext_sp(uc);
  cs_altstack_of(uc, &lo, &hi);
  if (ours->sp == 0 || lo == ours->sp || (sp >= lo && sp < hi)) return;
  if (!ours->swapped) {
    ours->old_sp = lo;
    ours->old_size = uc->uc_stack.ss_size;
    ours->old_flags = (uint32_t)uc->uc_stack.ss_flags;
    ours->swapped = 1;
  }
  write_to(ours, uc);
}

// At a handler's restorer, sp points to the handler's ucontext, and the next frame is the
// interrupted one. Nothing is written unless the two agree.
CS_ISLAND static bool write_around(const struct cs_altstack *ours, const struct cs_stack *stack,
                                   uint64_t restorer_sp, const struct cs_frame *interrupted) {
  uint64_t lo, hi;
  ucontext_t *uc = cs_ucontext_at_trampoline(stack, restorer_sp);
  if (uc == NULL || cs_ucontext_ip(uc) != interrupted->regs.r[CS_IP] ||
      cs_ucontext_sp(uc) != interrupted->regs.r[CS_SP])
    return false;
  cs_altstack_of(uc, &lo, &hi);
  if (lo == ours->sp) return true;
  if (lo != ours->old_sp) return false;
  write_to(ours, uc);
  return true;
}

CS_ISLAND void cs_altstack_install_all(struct cs_altstack *ours, const struct cs_world *world,
                                       const struct cs_regs *regs, const struct cs_stack *stack,
                                       uint64_t clr_thread, void *ucontext) {
  struct cs_walk walk;
  struct cs_frame frame;
  uint64_t lo, hi, above_sp = 0;
  uint32_t faults = 0;
  cs_altstack_install(ours, ucontext);
  cs_altstack_of(ucontext, &lo, &hi);
  if (ours->sp == 0 || lo != ours->sp) return;
  cs_walk_begin(&walk, world, regs, stack, clr_thread, CS_WALK_DEFAULT_DEPTH);
  cs_walk_limit(&walk, cs_load_relaxed(&cs_signal.request_limit_ns), cs_signal.ticks_of_ns);
  walk.fast = true;
  while (cs_walk_next(&walk, &frame)) {
    bool interrupted = (frame.flags & (CS_FRAME_EXACT | CS_FRAME_BRIDGED)) == CS_FRAME_EXACT;
    // The runtime does not return from the handler of a fault that it turns into an exception.
    if (above_sp != 0 && interrupted && !write_around(ours, stack, above_sp, &frame) &&
        walk.faults == faults) {
      cs_walk_leave(&walk);
      return;
    }
    faults = walk.faults;
    above_sp = frame.regs.r[CS_SP];
  }
  if (cs_walk_complete(&walk)) cs_store_release(&ours->ready, 1u);
}
