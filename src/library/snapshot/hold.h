// SPDX-License-Identifier: MIT
// hold: a thread that stands still in its handler for its holder (clrsnap_hold). Not for handlers.
#pragma once

#include "snapshot/take.h"

// The hold that the calling thread has; NULL: none.
struct cs_request *cs_hold_of_caller(void);
// Walks the thread that `held` keeps still, which must be the one of `id`, over its stack as it is.
// Its functions are read, without the CLR. S_FALSE: `id` is 0, the caller itself, which is no
// managed thread.
HRESULT cs_take_held(struct cs_take *take, const struct cs_request *held, ThreadID id,
                     uint32_t flags, const struct cs_regs *seed, struct cs_error *err);
