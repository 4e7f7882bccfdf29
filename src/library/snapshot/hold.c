// SPDX-License-Identifier: MIT
// Holding a thread, as SuspendThread, GetThreadContext and ResumeThread do on Windows (contract:
// C14). Not for handlers.
//
// Invariant: a held thread is released by its holder or by its deadline, whichever is first. A hold
// is only its slot, so nothing is allocated and no lock is taken between hold and release. A thread
// holds at most one other: a further request could wait for a lock that the held one owns.
#include "snapshot/hold.h"

#include "life/error.h"
#include "life/function.h"
#include "life/runtime.h"
#include "life/start.h"
#include "snapshot/complete.h"
#include "snapshot/context.h"
#include "threads/ask.h"
#include "threads/own_tid.h"
#include "threads/registry.h"
#include "threads/threads.h"

// A hold is its request; the public type is opaque.
static struct cs_request *request_of(const struct clrsnap_hold *hold) {
  return (struct cs_request *)(uintptr_t)hold;
}

// The caller's hold is found by its thread id, since the first use of a thread-local variable may
// allocate, and the target may own malloc's lock.
struct cs_request *cs_hold_of_caller(void) {
  if (cs_load_acquire(&cs_library.holds) == 0) return NULL;
  uint32_t tid = cs_own_tid();
  for (uint32_t i = 0; i < CS_REQUEST_SLOTS; i++) {
    enum cs_request_state state = CS_REQUEST_STATE(cs_load_acquire(&cs_requests[i].word));
    if ((state == CS_REQUEST_HELD || state == CS_REQUEST_EXPIRED) &&
        cs_load_acquire(&cs_requests[i].holder) == tid)
      return &cs_requests[i];
  }
  return NULL;
}

static bool is_held(const struct cs_request *held) {
  return CS_REQUEST_STATE(cs_load_acquire(&held->word)) == CS_REQUEST_HELD;
}

static HRESULT hold_is_over(struct cs_error *err) {
  cs_error_set(err, "the hold timed out, and the thread runs: see clrsnap_opts.hold_timeout_ms");
  return CORPROF_E_STACKSNAPSHOT_UNSAFE;
}

// The target is in its handler, so its registers and its stack are unchanged since the signal, and
// can be walked from this thread as well; with the seed and the registers that this call asks for.
static enum cs_request_answer walk_held(struct cs_request *request, const struct cs_request *held,
                                        const struct cs_regs *seed) {
  const struct cs_world *world = cs_load_acquire(&cs_signal.world);
  enum cs_request_answer answer = CS_ANSWER_WALKED;
  if (world == NULL) return CS_ANSWER_NOT_READY;
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  if (seed != NULL && cs_is_cooperative(world, held->clr_thread))
    answer = cs_seed_check(world, seed, &held->stack);
  else
    seed = NULL;
  request->capture.seeded = seed != NULL;
  if (answer == CS_ANSWER_WALKED)
    cs_capture_walk(&request->capture, world, seed != NULL ? seed : &held->capture.leaf,
                    &held->stack, held->clr_thread, cs_threads.max_depth);
  cs_epoch_leave(&cs_signal.epoch, parity);
  if (answer == CS_ANSWER_WALKED) cs_capture_complete(&request->capture);
  return answer;
}

HRESULT cs_take_held(struct cs_take *take, const struct cs_request *held, ThreadID id,
                     uint32_t flags, const struct cs_regs *seed, struct cs_error *err) {
  if (id == 0) return S_FALSE;
  if (id != held->clr_thread) {
    cs_error_set(err, "the calling thread holds another one: clrsnap_release it first");
    return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  }
  if (!is_held(held)) return hold_is_over(err);
  *take = (struct cs_take){.quiet = true, .request = cs_request_claim(err)};
  if (take->request == NULL) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  struct cs_capture *capture = &take->request->capture;
  capture->self = capture->asleep = false;
  capture->held = true;
  capture->plain = (flags & CS_REQUEST_PLAIN) != 0;
  capture->module_deaths = cs_module_deaths();
  capture->leaf = held->capture.leaf;
  capture->count = 0;
  HRESULT hr = cs_answer_to_hresult(walk_held(take->request, held, seed), err);
  if (hr == S_OK) cs_capture_read_functions(capture);
  // If the target has run on meanwhile, the stack is not valid, and methods may have died.
  if (hr == S_OK && !is_held(held)) {
    cs_functions_forget();
    hr = hold_is_over(err);
  }
  if (hr != S_OK) (void)cs_take_end(take);
  return hr;
}

static HRESULT hold_thread(ThreadID id, struct clrsnap_hold **out, struct cs_error *err) {
  struct cs_thread *thread;
  struct cs_take take;
  uint64_t clr_thread;
  if (cs_library_ready(err) != S_OK) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  if (cs_caller_is_managed()) {
    cs_error_set(err, "a thread that runs managed code may not hold another one (contract: C17)");
    return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  }
  if (cs_hold_of_caller() != NULL) {
    cs_error_set(err, "the calling thread holds a thread already: clrsnap_release it first");
    return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  }
  (void)cs_runtime_check(true, err);  // a snapshot of the held thread must not call the CLR
  if (id == 0 || cs_target_find(id, 0, &clr_thread, &thread) != CS_TARGET_OTHER) {
    cs_error_set(err, "there is no such managed thread to hold");
    return CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD;
  }
  HRESULT hr = cs_take_other(&take, thread, CS_REQUEST_HOLD, NULL, err);
  if (hr != S_OK) return hr;
  cs_store_release(&take.request->holder, cs_own_tid());
  cs_add_seq(&cs_library.holds, 1);
  // It cannot end while it is held, and afterwards it may, though the hold has not been released.
  cs_thread_unpin(thread);
  *out = (struct clrsnap_hold *)take.request;
  return S_OK;
}

CLRSNAP_API HRESULT clrsnap_hold(ThreadID thread, struct clrsnap_hold **out) {
  struct cs_error err = {0};
  HRESULT hr = CORPROF_E_STACKSNAPSHOT_UNSAFE;
  if (out == NULL) {
    cs_error_set(cs_last_error(), "`out` is NULL");
    return E_INVALIDARG;
  }
  *out = NULL;
  if (cs_library_enter()) {
    hr = hold_thread(thread, out, &err);
    cs_library_leave();
  } else {
    cs_error_set(&err, "clrsnap is not started: call clrsnap_start first");
  }
  if (hr != S_OK) *cs_last_error() = err;
  return hr;
}

CLRSNAP_API HRESULT clrsnap_hold_context(const struct clrsnap_hold *hold, BYTE context[],
                                         ULONG32 size) {
  if (hold == NULL || context == NULL || size < CS_CONTEXT_MIN || size % 16 != 0)
    return E_INVALIDARG;
  cs_context_of_regs(context, size, &request_of(hold)->capture.leaf, cs_context_general());
  return S_OK;
}

CLRSNAP_API HRESULT clrsnap_hold_unwind_to_managed(const struct clrsnap_hold *hold, BYTE context[],
                                                   ULONG32 size) {
  if (hold == NULL || context == NULL || size < CS_CONTEXT_MIN || size % 16 != 0)
    return E_INVALIDARG;
  const struct cs_capture *capture = &request_of(hold)->capture;
  for (uint32_t i = 0; i < capture->count; i++) {
    if (!cs_record_is_managed(&capture->records[i])) continue;
    if (i == 0)  // interrupted in managed code: all of its registers are known
      cs_context_of_regs(context, size, &capture->leaf, cs_context_general());
    else
      cs_context_of_record(context, size, &capture->records[i], cs_context_general());
    return S_OK;
  }
  return CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX;
}

CLRSNAP_API HRESULT clrsnap_release(struct clrsnap_hold *hold) {
  if (hold == NULL) return S_OK;
  struct cs_request *request = request_of(hold);
  struct cs_take take = {.request = request};
  cs_store_release(&request->holder, 0);
  bool was_held = cs_take_end(&take);
  cs_add_seq(&cs_library.holds, (uint32_t)-1);
  return was_held ? S_OK : S_FALSE;
}
