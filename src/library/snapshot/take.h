// SPDX-License-Identifier: MIT
// take: from a ThreadID to the capture of its stack. Not for handlers.
#pragma once

#include "base/error.h"
#include "clrsnap/clrsnap.h"
#include "signal/request.h"

// A capture that was taken, with the slot and, while `thread` is set, the pinned thread.
struct cs_take {
  struct cs_request *request;
  struct cs_thread *thread;
  uint64_t caller;  // the calling thread's ThreadID, if that was looked up already; else 0
  bool self;        // of the calling thread
  bool quiet;  // of a thread that the caller holds: it may own any lock, so the CLR is not called
};

enum cs_target {
  CS_TARGET_SELF,   // the calling thread, managed
  CS_TARGET_OTHER,  // another one; pinned
  CS_TARGET_NONE,   // not a managed thread, or not yet on an OS thread
  CS_TARGET_GONE,   // it has been destroyed
};
// Returns which thread `id` means, and pins *thread if that is another one. `caller`: as in
// cs_take.
enum cs_target cs_target_find(ThreadID id, uint64_t caller, uint64_t *clr_thread,
                              struct cs_thread **thread);
// Walks the calling thread from `regs` (`take` may hold that walk already), or asks the pinned
// `thread` (which is unpinned on failure and, without CS_REQUEST_HOLD, on success too). `flags`:
// CS_REQUEST_*; for the calling thread, CS_REQUEST_PLAIN at most. Returns S_OK, or an HRESULT with
// its reason in `err`.
HRESULT cs_take_self(struct cs_take *take, uint64_t clr_thread, const struct cs_regs *regs,
                     uint32_t flags, const struct cs_regs *seed, struct cs_error *err);
HRESULT cs_take_other(struct cs_take *take, struct cs_thread *thread, uint32_t flags,
                      const struct cs_regs *seed, struct cs_error *err);
// Returns the HRESULT for an enum cs_request_answer; `err` may be NULL.
HRESULT cs_answer_to_hresult(uint32_t answer, struct cs_error *err);
// Releases the thread if it is held, the slot, and the pin. Returns false if the thread had run on
// by itself.
bool cs_take_end(struct cs_take *take);
