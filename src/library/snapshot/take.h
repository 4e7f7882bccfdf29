// SPDX-License-Identifier: MIT
// Private to room snapshot: from a ThreadID to the capture of its stack. Not for handlers.
#ifndef CS_SNAPSHOT_TAKE_H
#define CS_SNAPSHOT_TAKE_H

#include "snapshot/snapshot.h"

// A capture that was taken; the slot and, while `thread` is set, the pinned thread are the
// holder's.
struct cs_take {
  struct cs_request *request;
  struct cs_thread *thread;
  bool self;   // of the calling thread
  bool quiet;  // of a thread that the caller holds: it may own any lock, so the CLR is not called
};

enum cs_target {
  CS_TARGET_SELF,   // the calling thread, managed
  CS_TARGET_OTHER,  // another one; pinned
  CS_TARGET_NONE,   // no managed thread, or not yet on an OS thread
  CS_TARGET_GONE,   // it has been destroyed
};
// Which thread `id` means. OTHER: *thread is pinned.
enum cs_target cs_target_find(ThreadID id, uint64_t *clr_thread, struct cs_thread **thread);
// Is the calling thread one that runs managed code? (contract: C17)
bool cs_caller_is_managed(void);

// Walks the calling thread from `regs` (`take` may hold that walk already), or asks the pinned
// `thread` (which is unpinned on failure and, without CS_REQUEST_HOLD, on success too). S_OK, or an
// HRESULT with its reason in `err`.
HRESULT cs_take_self(struct cs_take *take, uint64_t clr_thread, const struct cs_regs *regs,
                     const struct cs_regs *seed, struct cs_error *err);
HRESULT cs_take_other(struct cs_take *take, struct cs_thread *thread, uint32_t flags,
                      const struct cs_regs *seed, struct cs_error *err);
// The hold that the calling thread has (clrsnap_hold); NULL: none.
struct cs_request *cs_hold_of_caller(void);
// Walks the thread that `held` keeps still, which must be the one of `id`, over its stack as it is.
// Its functions are read, without the CLR. S_FALSE: `id` is 0, the caller itself, which is no
// managed thread.
HRESULT cs_take_held(struct cs_take *take, const struct cs_request *held, ThreadID id,
                     uint32_t flags, const struct cs_regs *seed, struct cs_error *err);
// The first two of CoreCLR's own checks, made by CoreCLR: has the runtime started, and is the flag
// in the event mask? `known` is enough if they were passed once: then nobody is asked.
HRESULT cs_runtime_check(bool known, struct cs_error *err);
bool cs_runtime_checked(void);  // passed once
// Asks the CLR for every function of a capture. False: something was not told, for one because its
// module is being unloaded; cs_deliver will say which.
bool cs_capture_resolve(struct cs_capture *capture);
// What an answer means to a caller; `err` may be NULL.
HRESULT cs_answer_to_hresult(uint32_t answer, struct cs_error *err);
// Lets the thread run on if it is held, and gives everything back. False: it had run on by itself.
bool cs_take_end(struct cs_take *take);

#endif
