// SPDX-License-Identifier: MIT
// The public API: start and stop, and the callbacks that a profiler passes on. Threads: see
// clrsnap.h. Not for handlers.
#include "snapshot/api.h"

#include <unistd.h>

#include "base/log.h"
#include "life/altstacks_soon.h"
#include "life/error.h"
#include "life/function.h"
#include "life/images.h"
#include "life/runtime.h"
#include "life/start.h"
#include "snapshot/complete.h"
#include "threads/registry.h"

static HRESULT report(HRESULT hr, const struct cs_error *err) {
  if (FAILED(hr)) *cs_last_error() = *err;
  return hr;
}

static IUnknown *started_with;  // in clrsnap_start; an agent in the same process has another

CLRSNAP_API HRESULT clrsnap_start(IUnknown *info, const struct clrsnap_opts *opts) {
  struct cs_error err = {0};
  HRESULT hr = cs_library_start(info, opts, &err);
  if (FAILED(hr))
    cs_log("clrsnap_start: %s", err.text);
  else
    cs_store_release(&started_with, info);
  if (hr == S_OK) {
    cs_library_altstacks_soon(true);
    cs_capture_prepare();
  }
  return report(hr, &err);
}

CLRSNAP_API void clrsnap_stop(void) {
  cs_library_stop(cs_load_acquire(&started_with));
}

CLRSNAP_API HRESULT clrsnap_ready(void) {
  struct cs_error err = {0};
  HRESULT hr = cs_library_ready(&err);
  cs_library_refresh_after_handlers();
  if (hr == S_OK && cs_library.info != NULL && !cs_function_check()) {
    cs_error_set(&err,
                 "the runtime has run no method so far to check its layout against; try again");
    hr = CORPROF_E_STACKSNAPSHOT_UNSAFE;
  }
  struct cs_error ignored;  // checked now, since a thread that holds another one cannot call the
                            // CLR
  if (hr == S_OK) (void)cs_runtime_check(true, &ignored);
  return report(hr, &err);
}

static void (*thread_ends)(ThreadID id);  // set by the agent's thread, read by any

void cs_on_thread_end(void (*call)(ThreadID id)) {
  cs_store_release(&thread_ends, call);
}

// The C library calls functions that were registered with this one before the destructors of
// pthread keys.
extern int __cxa_thread_atexit_impl(void (*call)(void *), void *data, void *library)
    __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static void end_self(void *unused) {
  (void)unused;
  if (getpid() != cs_load_relaxed(&cs_signal.pid) || gettid() == getpid())
    return;  // exit() was called
  const struct cs_thread *self = cs_registry_self();
  if (self != NULL && self->clr_thread != 0) clrsnap_thread_destroyed(self->clr_thread);
}

// For a thread that the runtime has not made, ThreadDestroyed comes after the thread's end. When
// the thread ends, the runtime frees its small alternate stack, in the destructor of a pthread key,
// but only if that is the installed one; so the larger one is removed before.
static void watch_own_end(void) {
  static __thread bool watched;
  if (!watched && __cxa_thread_atexit_impl != NULL)
    watched = __cxa_thread_atexit_impl(end_self, NULL, &__dso_handle) == 0;
}

CLRSNAP_API void clrsnap_thread_created(ThreadID thread) {
  if (thread != 0) (void)cs_registry_created(thread);
}

CLRSNAP_API void clrsnap_thread_assigned(ThreadID thread, DWORD os_thread_id) {
  if (thread == 0 || os_thread_id == 0) return;
  cs_library_refresh_after_handlers();
  (void)cs_registry_assigned(thread, os_thread_id);
  watch_own_end();
  cs_library_check_thread(thread, os_thread_id);
}

CLRSNAP_API void clrsnap_thread_destroyed(ThreadID thread) {
  void (*call)(ThreadID) = cs_load_acquire(&thread_ends);
  if (call != NULL) call(thread);
  cs_registry_destroyed(thread);
}

CLRSNAP_API void clrsnap_module_unload_started(ModuleID module) {
  (void)module;
  cs_library_code_died(true);
}

CLRSNAP_API void clrsnap_dynamic_method_unloaded(FunctionID function) {
  (void)function;
  cs_library_code_died(false);
}
