// SPDX-License-Identifier: MIT
// The handler's part of alternate signal stacks. Signal-safe: yes; on the thread itself.
//
// Invariant: `ready` is set only when no return from a handler leads back to the old stack. The
// kernel restores the alternate stack from the signal frame, so the new one is written there: into
// this signal's frame, and into those of the enclosing handlers, such as the one in which the
// runtime stops a thread.
#include "signal/altstack.h"

#include <signal.h>
#include <ucontext.h>

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

// sigreturn installs what the handler writes into its ucontext. Not while the alternate stack is in
// use: the kernel then refuses without an error.
CS_ISLAND void cs_altstack_install(struct cs_altstack *ours, void *ucontext) {
  ucontext_t *uc = ucontext;
  uint64_t lo, hi, sp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
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

// At the restorer of a handler, sp points to the handler's ucontext, and the next frame is what was
// interrupted. The two are compared before anything is written.
CS_ISLAND static bool write_around(const struct cs_altstack *ours, const struct cs_stack *stack,
                                   const struct cs_record *restorer,
                                   const struct cs_record *interrupted) {
  uint64_t lo, hi, at = cs_record_sp(restorer);
  ucontext_t *uc = (ucontext_t *)(uintptr_t)at;
  if ((at & 7) != 0 || !cs_stack_holds(stack, at, offsetof(ucontext_t, uc_sigmask))) return false;
  if ((uint64_t)uc->uc_mcontext.gregs[REG_RIP] != cs_record_ip(interrupted) ||
      (uint64_t)uc->uc_mcontext.gregs[REG_RSP] != cs_record_sp(interrupted))
    return false;
  cs_altstack_of(uc, &lo, &hi);
  if (lo == ours->sp) return true;
  if (lo != ours->old_sp) return false;
  write_to(ours, uc);
  return true;
}

CS_ISLAND void cs_altstack_equip(struct cs_altstack *ours, const struct cs_capture *capture,
                                 const struct cs_stack *stack, void *ucontext) {
  uint64_t lo, hi;
  cs_altstack_install(ours, ucontext);
  cs_altstack_of(ucontext, &lo, &hi);
  if (ours->sp == 0 || lo != ours->sp || capture->stop != CS_STOP_BASE) return;
  for (uint32_t i = 1; i < capture->count; i++) {
    const struct cs_record *record = &capture->records[i];
    if ((record->flags & (CS_FRAME_EXACT | CS_FRAME_BRIDGED)) != CS_FRAME_EXACT) continue;
    // The runtime does not return from the handler of a fault that it turns into an exception.
    if (!write_around(ours, stack, &capture->records[i - 1], record) &&
        !cs_capture_is_fault(capture, i))
      return;
  }
  cs_store_release(&ours->ready, 1u);
}
