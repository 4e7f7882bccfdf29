// SPDX-License-Identifier: MIT
// altstack: larger alternate signal stacks. Not for handlers.
#pragma once

#include "signal/thread.h"

// Maps a stack for a thread. If there is no memory, sp is 0.
void cs_altstack_map(struct cs_altstack *alt, uint32_t tid);
void cs_altstack_enter(struct cs_altstack *alt);  // on the thread itself: it is in use from now on
// Gives up the larger stack. On the thread itself, puts the old one back. On another thread, leaves
// the stack mapped until there is no thread of that tid that could still use it.
void cs_altstack_leave(struct cs_altstack *alt);
void cs_altstack_free(struct cs_altstack *alt);  // unmaps one that was never in use
// Returns whether the thread may be sent a signal at any time. A managed thread that existed before
// the library may not be until it has its larger stack (install_altstacks.c); a native thread may,
// since the runtime handles no faults on it. No thread may while code with small stacks is in the
// process (docs/signal-safety.md, "Small stacks").
static inline bool cs_thread_may_be_signalled(const struct cs_thread *thread) {
  if (cs_load_acquire(&cs_signal.small_stacks) != 0) return false;
  return thread->clr_thread == 0 || cs_load_acquire(&thread->altstack.ready) != 0;
}
// Returns whether the thread's own stack, on which the signal is delivered, has room for it. The
// stack of a native thread must be known to have room; that of a managed thread, which the runtime
// itself signals, must not be known to have none.
static inline enum cs_stack_room cs_thread_room(const struct cs_thread *thread) {
  if (thread->clr_thread == 0) return (enum cs_stack_room)cs_load_acquire(&thread->room);
  uint64_t hi = cs_load_acquire(&thread->stack.hi);
  return hi == 0 || hi - thread->stack.lo >= CS_LEAST_STACK ? CS_ROOM_ENOUGH : CS_ROOM_SMALL;
}
