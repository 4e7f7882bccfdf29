// SPDX-License-Identifier: MIT
// Private to room snapshot: the parts of a walk of the calling thread that may be done in a signal
// handler. Async-signal-safe, all of them.
#ifndef CS_SNAPSHOT_HANDLER_H
#define CS_SNAPSHOT_HANDLER_H

#include "snapshot/take.h"

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
// Resolves what can be resolved without the CLR.
void cs_capture_read_functions(struct cs_capture *capture);

// The physical report (api.c), of functions that are resolved as far as they are to be.
HRESULT cs_report_frames(const struct cs_capture *capture, clrsnap_frame_callback *callback,
                         void *data);
void cs_report_result(const struct cs_capture *capture, uint64_t held_ns,
                      struct clrsnap_walk_result *result);

#endif
