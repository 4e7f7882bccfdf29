// SPDX-License-Identifier: MIT
// handler: walks of the calling thread that may be taken in a signal handler. Async-signal-safe.
#pragma once

#include "snapshot/take.h"

// Returns the ThreadID of the calling thread, by the registry, or 0 if it has none.
uint64_t cs_clr_thread_of_caller(void);
// The same as cs_take_self, but without waiting, calling the CLR, or setting an error text.
HRESULT cs_take_now(struct cs_take *take, uint64_t clr_thread, const struct cs_regs *regs,
                    uint32_t flags, const struct cs_regs *seed);
// The first step of a walk of `id`. If that is the calling thread, takes the walk. Sets *in_handler
// if the caller is in a signal handler: then nothing else may be done, and the result is final.
// Otherwise the result has no meaning, and `take` may have a capture for cs_take_self. With `quiet`
// (CS_SNAPSHOT_QUIET), *in_handler is also set for a native thread that asks for itself (S_FALSE:
// not a managed thread), and for a managed one that asks for another thread in a handler.
HRESULT cs_take_early(struct cs_take *take, ThreadID id, const struct cs_regs *caller,
                      uint32_t flags, const struct cs_regs *seed, bool quiet, bool *in_handler);
