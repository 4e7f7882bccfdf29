// SPDX-License-Identifier: MIT
// clrsnap_walk and clrsnap_walk_from_signal: the physical walk. Threads: see clrsnap.h.
#include "base/clock.h"
#include "life/error.h"
#include "life/function.h"
#include "life/start.h"
#include "signal/ucontext.h"
#include "snapshot/handler.h"
#include "snapshot/hold.h"
#include "snapshot/physical.h"
#include "snapshot/self.h"

// `take` may have a capture of the calling thread already.
static HRESULT take_walk(ThreadID id, const struct cs_regs *caller, struct cs_take *take,
                         struct cs_error *err) {
  struct cs_thread *thread;
  uint64_t clr_thread;
  if (cs_library_ready(err) != S_OK) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  const struct cs_request *held = cs_hold_of_caller();
  if (held != NULL) return cs_take_held(take, held, id, CS_REQUEST_PLAIN, NULL, err);
  switch (cs_target_find(id, take->caller, &clr_thread, &thread)) {
    case CS_TARGET_SELF:
      return cs_take_self(take, clr_thread, caller, CS_REQUEST_PLAIN, NULL, err);
    case CS_TARGET_OTHER:
      return cs_take_other(take, thread, CS_REQUEST_PLAIN, NULL, err);
    case CS_TARGET_GONE:
      cs_error_set(err, "the thread has been destroyed");
      return CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD;
    case CS_TARGET_NONE:
      break;
  }
  return S_FALSE;
}

static uint64_t held_ns(const struct cs_take *take) {
  if (take->self || take->quiet || take->request->capture.asleep) return 0;
  return cs_clock_ticks_to_ns(take->request->exit_tsc - take->request->entry_tsc);
}

struct walk_request {
  ThreadID id;
  const struct cs_regs *caller;
  clrsnap_frame_callback *callback;
  void *data;
  bool no_functions;
  struct clrsnap_walk_result *result;  // may be NULL
};

// Sets *in_handler if nothing may be called from then on, not even for an error text.
static HRESULT walk(const struct walk_request *request, bool *in_handler, struct cs_error *err) {
  struct cs_take take = {0};
  struct clrsnap_walk_result out = {.size = sizeof out};
  HRESULT hr =
      cs_take_early(&take, request->id, request->caller, CS_REQUEST_PLAIN, NULL, false, in_handler);
  if (!*in_handler) hr = take_walk(request->id, request->caller, &take, err);
  if (hr == S_OK) {
    struct cs_capture *capture = &take.request->capture;
    if (*in_handler)
      cs_capture_read_functions(capture);
    else if (!take.quiet && !request->no_functions)
      (void)cs_capture_resolve(capture);
    cs_report_result(capture, held_ns(&take), &out);
    hr = cs_report_frames(capture, request->callback, request->data);
  }
  if (take.request != NULL) (void)cs_take_end(&take);
  if (request->result != NULL) *request->result = out;
  return hr == S_FALSE ? S_OK : hr;
}

CLRSNAP_API HRESULT clrsnap_walk(ThreadID thread, clrsnap_frame_callback *callback, void *data,
                                 const struct clrsnap_walk_opts *opts,
                                 struct clrsnap_walk_result *result) {
  struct cs_error err;
  struct cs_regs caller;
  HRESULT hr = E_INVALIDARG;
  bool in_handler = false;
  err.text[0] = '\0';
  cs_regs_of_caller(&caller);
  const struct walk_request request = {
      thread, &caller, callback, data, opts != NULL && opts->no_functions != 0, result,
  };
  if (callback == NULL || (opts != NULL && opts->size != sizeof *opts) ||
      (result != NULL && result->size != sizeof *result)) {
    cs_error_set(&err, "the callback is NULL, or a structure's size is not its sizeof");
  } else if (!cs_library_enter()) {
    cs_error_set(&err, "clrsnap is not started: call clrsnap_start first");
    hr = CORPROF_E_STACKSNAPSHOT_UNSAFE;
  } else {
    hr = walk(&request, &in_handler, &err);
    cs_library_leave();
  }
  if (FAILED(hr) && !in_handler) *cs_last_error() = err;
  return hr;
}

// ---- In a signal handler of the caller's ----

static HRESULT walk_from_signal(const void *ucontext, clrsnap_frame_callback *callback, void *data,
                                struct clrsnap_walk_result *result) {
  struct cs_regs interrupted;
  struct cs_take take;
  if (cs_load_acquire(&cs_signal.world) == NULL) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  cs_regs_from_ucontext(&interrupted, ucontext);
  HRESULT hr = cs_take_now(&take, cs_clr_thread_of_caller(), &interrupted, CS_REQUEST_PLAIN, NULL);
  if (hr != S_OK) return hr;
  struct cs_capture *capture = &take.request->capture;
  cs_capture_read_functions(capture);
  hr = cs_report_frames(capture, callback, data);
  if (result != NULL) cs_report_result(capture, 0, result);
  (void)cs_take_end(&take);
  return hr;
}

CLRSNAP_API HRESULT clrsnap_walk_from_signal(const void *ucontext, clrsnap_frame_callback *callback,
                                             void *data, struct clrsnap_walk_result *result) {
  if (ucontext == NULL || callback == NULL || (result != NULL && result->size != sizeof *result))
    return E_INVALIDARG;
  if (!cs_library_enter()) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  HRESULT hr = walk_from_signal(ucontext, callback, data, result);
  cs_library_leave();
  return hr;
}
