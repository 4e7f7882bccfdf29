// SPDX-License-Identifier: MIT
// The registers that a signal has interrupted, in the ucontext of its handler. Signal-safe: yes.
#pragma once

#include "unwind/unwind.h"

// Reads the interrupted registers of a ucontext_t. All are known.
CS_ISLAND void cs_regs_from_ucontext(struct cs_regs *regs, const void *ucontext);
CS_ISLAND uint64_t cs_ucontext_sp(const void *ucontext);
CS_ISLAND uint64_t cs_ucontext_ip(const void *ucontext);
// The ucontext of a handler that has returned to its trampoline, where sp was `sp`; NULL: it does
// not lie on the stack.
CS_ISLAND void *cs_ucontext_at_trampoline(const struct cs_stack *stack, uint64_t sp);
