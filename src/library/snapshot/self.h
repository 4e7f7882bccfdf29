// SPDX-License-Identifier: MIT
// self: walks of the calling thread. Async-signal-safe.
#pragma once

#include "signal/request.h"

// Gets the registers of the function that calls this, as they are when this returns.
void cs_regs_of_caller(struct cs_regs *regs);
// Returns the address that handlers of the signal, which is the library's, return to, or 0 if it is
// not known.
uint64_t cs_handler_return(int signo);
// Gets the bounds of the calling thread's stacks. `thread`: its entry, or NULL.
void cs_self_bounds(const struct cs_thread *thread, const struct cs_regs *from,
                    struct cs_stack *stack);
// Walks the calling thread from `regs`, into a slot that is and stays CLAIMED. `plain`: as with
// CS_REQUEST_PLAIN.
enum cs_request_answer cs_walk_self(struct cs_request *request, const struct cs_regs *regs,
                                    uint64_t clr_thread, const struct cs_regs *seed, bool plain);
