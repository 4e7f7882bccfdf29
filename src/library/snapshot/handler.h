// SPDX-License-Identifier: MIT
// Private to room snapshot: the parts of a walk of the calling thread that may be done in a signal
// handler. Async-signal-safe, all of them.
#ifndef CS_SNAPSHOT_HANDLER_H
#define CS_SNAPSHOT_HANDLER_H

#include "snapshot/take.h"

// The ThreadID of the calling thread, by the registry; 0: it has none.
uint64_t cs_clr_thread_of_caller(void);
// As cs_take_self, without a wait, a call, or a reason.
HRESULT cs_take_now(struct cs_take *take, uint64_t clr_thread, const struct cs_regs *regs,
                    const struct cs_regs *seed);
// The first thing that a walk does which may be of the calling thread: takes it, if it is one and
// everything is there that a handler needs. *in_handler: that is all that may be done. Else a
// capture may be in `take` for cs_take_self, and what is answered means nothing. `quiet`: with
// CS_SNAPSHOT_QUIET; then nothing more may be done for a native thread that asks for itself, either
// (S_FALSE: no managed thread), nor for a managed one that asks in a handler for another.
HRESULT cs_take_early(struct cs_take *take, ThreadID id, const struct cs_regs *here,
                      const struct cs_regs *seed, bool quiet, bool *in_handler);

#endif
