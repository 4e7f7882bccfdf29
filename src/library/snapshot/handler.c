// SPDX-License-Identifier: MIT
// Walks of the calling thread in another component's signal handler, at any instruction: the thread
// may own any lock, be inside malloc, the JIT or the collector. Async-signal-safe.
//
// Invariant: nothing here takes a lock, allocates, waits, touches errno or thread-local memory, or
// calls the CLR. So there is no error text, and a method that is neither in the cache nor in the
// runtime's memory is a failure.
#include "snapshot/handler.h"

#include "life/images.h"
#include "snapshot/self.h"
#include "threads/ask.h"
#include "threads/own_tid.h"
#include "threads/registry.h"
#include "threads/threads.h"

// Whether there is a signal frame above the newest managed frame. The frame of a fault that the
// runtime turns into an exception does not count: its callbacks are ordinary ones.
enum place { OUTSIDE, IN_HANDLER, UNKNOWN };  // UNKNOWN: the walk ended too early

static enum place place_of(const struct cs_capture *capture) {
  for (uint32_t i = 1; i < capture->count; i++) {
    const struct cs_record *record = &capture->records[i];
    if ((record->flags & (CS_FRAME_EXACT | CS_FRAME_BRIDGED)) == CS_FRAME_EXACT &&
        !cs_capture_is_fault(capture, i))
      return IN_HANDLER;
    if (cs_record_is_managed(record)) return OUTSIDE;
  }
  return capture->stop == CS_STOP_BASE ? OUTSIDE : UNKNOWN;
}

// The same without a walk: a handler's return address is on the stack. A stale one, in memory that
// has not been written since, counts as well.
static bool may_be_in_handler(uint64_t clr_thread, const struct cs_regs *caller) {
  enum { MOST = 64 << 10 };
  struct cs_stack stack;
  uint64_t sp = caller->r[CS_SP], restorer = cs_handler_return(cs_threads.signal_number);
  cs_self_bounds(cs_registry_find(clr_thread), caller, &stack);
  uint64_t hi = sp >= stack.lo && sp < stack.hi ? stack.hi : stack.alt_hi;
  if (sp >= hi || restorer == 0) return true;
  if (hi - sp > MOST) hi = sp + MOST;
  for (uint64_t at = sp; at + 8 <= hi; at += 8)
    if (*(const cs_any_u64 *)(uintptr_t)at == restorer) return true;
  return false;
}

HRESULT cs_take_now(struct cs_take *take, uint64_t clr_thread, const struct cs_regs *regs,
                    uint32_t flags, const struct cs_regs *seed) {
  bool plain = (flags & CS_REQUEST_PLAIN) != 0;
  *take = (struct cs_take){.caller = clr_thread, .self = true, .request = cs_request_claim_now()};
  if (take->request == NULL) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  HRESULT hr =
      cs_answer_to_hresult(cs_walk_self(take->request, regs, clr_thread, seed, plain), NULL);
  if (hr != S_OK)
    (void)cs_take_end(take);
  else if (take->request->capture.stop == CS_STOP_UNKNOWN_CODE)
    cs_library_note_unknown_code();
  return hr;
}

uint64_t cs_clr_thread_of_caller(void) {
  struct cs_thread *thread = cs_registry_find_tid(cs_own_tid());
  return thread != NULL ? thread->clr_thread : 0;
}

// `capture` may be NULL: there was no room for one.
static bool is_in_handler(const struct cs_capture *capture, uint64_t clr_thread,
                          const struct cs_regs *caller, bool quiet) {
  enum place place = capture != NULL ? place_of(capture) : UNKNOWN;
  return place == UNKNOWN ? quiet && may_be_in_handler(clr_thread, caller) : place == IN_HANDLER;
}

// For a walk of another thread: a caller in a handler may own a lock that the walk needs.
static HRESULT check_before_other(uint64_t clr_thread, const struct cs_regs *caller,
                                  bool *in_handler) {
  struct cs_take self;
  bool taken = cs_take_now(&self, clr_thread, caller, CS_REQUEST_PLAIN, NULL) == S_OK;
  *in_handler = is_in_handler(taken ? &self.request->capture : NULL, clr_thread, caller, true);
  if (taken) (void)cs_take_end(&self);
  return *in_handler ? CORPROF_E_STACKSNAPSHOT_UNSAFE : S_OK;
}

HRESULT cs_take_early(struct cs_take *take, ThreadID id, const struct cs_regs *caller,
                      uint32_t flags, const struct cs_regs *seed, bool quiet, bool *in_handler) {
  uint64_t clr_thread = cs_clr_thread_of_caller();
  *take = (struct cs_take){.caller = clr_thread};
  *in_handler = quiet && id == 0 && clr_thread == 0;
  if (*in_handler) return S_FALSE;
  if (cs_load_acquire(&cs_signal.world) == NULL || clr_thread == 0) return S_OK;
  if (id != 0 && id != clr_thread)
    return quiet && cs_registry_find(id) != NULL
               ? check_before_other(clr_thread, caller, in_handler)
               : S_OK;
  HRESULT hr = cs_take_now(take, clr_thread, caller, flags, seed);
  if (hr == S_OK && seed == NULL) {
    *in_handler = is_in_handler(&take->request->capture, clr_thread, caller, quiet);
    return hr;
  }
  // A walk from a seed says nothing about the caller.
  struct cs_take unseeded;
  bool taken = cs_take_now(&unseeded, clr_thread, caller, CS_REQUEST_PLAIN, NULL) == S_OK;
  *in_handler = is_in_handler(taken ? &unseeded.request->capture : NULL, clr_thread, caller, quiet);
  if (taken) (void)cs_take_end(&unseeded);
  return hr;
}
