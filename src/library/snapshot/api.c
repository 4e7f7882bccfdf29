// SPDX-License-Identifier: MIT
// The rest of the public API: start and stop, what a profiler passes on, and the physical walk.
// Threads as clrsnap.h says; not for handlers.
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "snapshot/handler.h"

static HRESULT report(HRESULT hr, const struct cs_error *err) {
  if (FAILED(hr)) *cs_last_error() = *err;
  return hr;
}

static IUnknown *started_with;  // by clrsnap_start; an agent in the same process has its own

CLRSNAP_API HRESULT clrsnap_start(IUnknown *info, const struct clrsnap_opts *opts) {
  struct cs_error err = {0};
  HRESULT hr = cs_core_start(info, opts, &err);
  if (FAILED(hr))
    cs_log("clrsnap_start: %s", err.text);
  else
    cs_store_release(&started_with, info);
  if (hr == S_OK) cs_core_equip_soon(true);
  return report(hr, &err);
}

CLRSNAP_API void clrsnap_stop(void) {
  cs_core_stop(cs_load_acquire(&started_with));
}

CLRSNAP_API HRESULT clrsnap_ready(void) {
  struct cs_error err = {0};
  HRESULT hr = cs_core_ready(&err);
  cs_core_refresh_after_handlers();
  if (hr == S_OK && cs_core.info != NULL && !cs_function_check()) {
    cs_error_set(&err,
                 "the runtime has run no method so far to check its layout against; try again");
    hr = CORPROF_E_STACKSNAPSHOT_UNSAFE;
  }
  struct cs_error unasked;  // whoever holds a thread later cannot ask the CLR then
  if (hr == S_OK) (void)cs_runtime_check(true, &unasked);
  return report(hr, &err);
}

CLRSNAP_API void clrsnap_thread_created(ThreadID thread) {
  if (thread != 0) (void)cs_registry_created(thread);
}

CLRSNAP_API void clrsnap_thread_assigned(ThreadID thread, DWORD os_thread_id) {
  if (thread == 0 || os_thread_id == 0) return;
  cs_core_refresh_after_handlers();
  (void)cs_registry_assigned(thread, os_thread_id);
  cs_core_check_thread(thread, os_thread_id);
}

CLRSNAP_API void clrsnap_thread_destroyed(ThreadID thread) {
  void (*told)(ThreadID) = cs_load_acquire(&cs_core.thread_ends);
  if (told != NULL) told(thread);
  cs_registry_destroyed(thread);
}

CLRSNAP_API void clrsnap_module_unload_started(ModuleID module) {
  (void)module;
  cs_core_code_died(true);
}

CLRSNAP_API void clrsnap_dynamic_method_unloaded(FunctionID function) {
  (void)function;
  cs_core_code_died(false);
}

// ---- The physical walk ----

static uint32_t kind_of(const struct cs_record *record) {
  switch ((enum cs_code_kind)record->kind) {
    case CS_CODE_JIT:
      return CLRSNAP_FRAME_MANAGED_JIT;
    case CS_CODE_R2R:
      return CLRSNAP_FRAME_MANAGED_R2R;
    case CS_CODE_STUB:
      return CLRSNAP_FRAME_STUB;
    default:
      return CLRSNAP_FRAME_NATIVE;
  }
}

// A physical frame is reported whether or not its function can be told.
static void describe(const struct cs_record *record, struct clrsnap_frame *frame) {
  *frame = (struct clrsnap_frame){
      .ip = cs_record_ip(record),
      .sp = cs_record_sp(record),
      .method_start = record->method_start,
      .function = record->function_id,
      .kind = kind_of(record),
      .flags = record->flags | (record->funclet ? CLRSNAP_FRAME_FUNCLET : 0u),
  };
}

HRESULT cs_report_frames(const struct cs_capture *capture, clrsnap_frame_callback *callback,
                         void *data) {
  for (uint32_t i = 0; i < capture->count; i++) {
    struct clrsnap_frame frame;
    describe(&capture->records[i], &frame);
    if (callback(&frame, data) != S_OK) return CORPROF_E_STACKSNAPSHOT_ABORTED;
  }
  return S_OK;
}

void cs_report_result(const struct cs_capture *capture, uint64_t held_ns,
                      struct clrsnap_walk_result *result) {
  *result = (struct clrsnap_walk_result){
      .size = sizeof *result,
      .stop = (uint32_t)capture->stop,
      .frames = capture->count,
      .stop_ip = capture->stop_ip,
      .held_ns = held_ns,
      .flags = capture->asleep ? CLRSNAP_WALK_ASLEEP : 0u,
  };
}

// The calling thread's capture is taken already, or nobody's.
static HRESULT take_walk(ThreadID id, const struct cs_regs *here, struct cs_take *take,
                         struct cs_error *err) {
  struct cs_thread *thread;
  uint64_t clr_thread;
  if (cs_core_ready(err) != S_OK) return CORPROF_E_STACKSNAPSHOT_UNSAFE;
  const struct cs_request *held = cs_hold_of_caller();
  if (held != NULL) return cs_take_held(take, held, id, CS_REQUEST_PLAIN, NULL, err);
  switch (cs_target_find(id, &clr_thread, &thread)) {
    case CS_TARGET_SELF:
      return cs_take_self(take, clr_thread, here, NULL, err);
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
  const struct cs_regs *here;
  clrsnap_frame_callback *callback;
  void *data;
  bool no_functions;
  struct clrsnap_walk_result *result;  // may be NULL
};

// *in_handler: nothing may be called any more, not even for an error's text.
static HRESULT walk(const struct walk_request *request, bool *in_handler, struct cs_error *err) {
  struct cs_take take = {0};
  struct clrsnap_walk_result out = {.size = sizeof out};
  HRESULT hr = cs_take_early(&take, request->id, request->here, NULL, false, in_handler);
  if (!*in_handler) hr = take_walk(request->id, request->here, &take, err);
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
  struct cs_regs here;
  HRESULT hr = E_INVALIDARG;
  bool in_handler = false;
  err.text[0] = '\0';
  cs_regs_here(&here);
  const struct walk_request request = {
      thread, &here, callback, data, opts != NULL && opts->no_functions != 0, result,
  };
  if (callback == NULL || (opts != NULL && opts->size != sizeof *opts) ||
      (result != NULL && result->size != sizeof *result)) {
    cs_error_set(&err, "the callback is NULL, or a structure's size is not its sizeof");
  } else if (!cs_core_enter()) {
    cs_error_set(&err, "clrsnap is not started: call clrsnap_start first");
    hr = CORPROF_E_STACKSNAPSHOT_UNSAFE;
  } else {
    hr = walk(&request, &in_handler, &err);
    cs_core_leave();
  }
  return in_handler ? hr : report(hr, &err);
}
