// SPDX-License-Identifier: MIT
// altstack: the handler's part of larger alternate signal stacks (docs/signal-safety.md, "Alternate
// stacks"). Signal-safe: yes.
#pragma once

#include "signal/thread.h"

// Gets the bounds of the interrupted thread's current alternate stack; 0 and 0 if it has none.
CS_ISLAND void cs_altstack_of(const void *ucontext, uint64_t *lo, uint64_t *hi);
// Gives the thread its larger alternate stack as of the handler's return.
CS_ISLAND void cs_altstack_install(struct cs_altstack *ours, void *ucontext);
// Does the same in every handler that is active on the calling thread (a walk finds them), then
// sets `ready`. The caller is inside the epoch.
CS_ISLAND void cs_altstack_install_all(struct cs_altstack *ours, const struct cs_world *world,
                                       const struct cs_regs *regs, const struct cs_stack *stack,
                                       uint64_t clr_thread, void *ucontext);
