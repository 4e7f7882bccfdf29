// SPDX-License-Identifier: MIT
// self: walks of the calling thread. Async-signal-safe, all of it.
#pragma once

#include "signal/request.h"

// The registers of the function that calls this, as they will be when it goes on.
void cs_regs_of_caller(struct cs_regs *regs);
// The address that handlers of the signal, which is the library's, return to; 0: it is not known.
uint64_t cs_handler_return(int signo);
// The stack that the calling thread is on. `thread`: its entry, or NULL.
void cs_self_bounds(const struct cs_thread *thread, const struct cs_regs *from,
                    struct cs_stack *stack);
// Walks the calling thread from `regs`, into a slot that is and stays CLAIMED. `plain`: as with
// CS_REQUEST_PLAIN.
enum cs_request_answer cs_walk_self(struct cs_request *request, const struct cs_regs *regs,
                                    uint64_t clr_thread, const struct cs_regs *seed, bool plain);
