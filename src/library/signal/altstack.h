// SPDX-License-Identifier: MIT
// altstack: the handler's part of larger alternate signal stacks (docs/signal-safety.md, "Alternate
// stacks"). Signal-safe: yes.
#pragma once

#include "signal/thread.h"

// The alternate stack that the interrupted thread has at this moment; 0 and 0: none.
CS_ISLAND void cs_altstack_of(const void *ucontext, uint64_t *lo, uint64_t *hi);
// Gives the thread the larger one when it returns from the handler.
CS_ISLAND void cs_altstack_install(struct cs_altstack *ours, void *ucontext);
// The same for all handlers that the calling thread is in, which a walk finds; then sets `ready`.
// The caller is inside the epoch.
CS_ISLAND void cs_altstack_install_all(struct cs_altstack *ours, const struct cs_world *world,
                                       const struct cs_regs *regs, const struct cs_stack *stack,
                                       uint64_t clr_thread, void *ucontext);
