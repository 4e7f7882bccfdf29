// SPDX-License-Identifier: MIT
// hold: a thread that waits in its handler for its holder (clrsnap_hold). Not for handlers.
#pragma once

#include "snapshot/take.h"

// Returns the hold that the calling thread has, or NULL if there is none.
struct cs_request *cs_hold_of_caller(void);
// Walks the thread that `held` holds, which must be the thread `id`, over its own stack. Reads its
// functions, without the CLR. Returns S_FALSE if `id` is 0: the caller itself, which is not a
// managed thread.
HRESULT cs_take_held(struct cs_take *take, const struct cs_request *held, ThreadID id,
                     uint32_t flags, const struct cs_regs *seed, struct cs_error *err);
