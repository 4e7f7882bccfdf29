// SPDX-License-Identifier: MIT
// The library on behalf of a guest: started before its Initialize, ended after its detach.
// Invariants: if any of this fails, the guest runs on with the runtime's own DoStackSnapshot, and
// the log says why; whether walks are possible is decided here, in the runtime's callbacks and on a
// thread of the library's own, and never in a walk, which may run in a signal handler. At start-up
// that happens in the callback for CoreLib, before the runtime counts as started; until then the
// runtime itself refuses all walks. Threads: those of the runtime's callbacks, and one of the
// library's. Not for handlers.
#include <unistd.h>

#include "base/log.h"
#include "base/own_thread.h"
#include "dropin/guest.h"
#include "life/altstacks_soon.h"
#include "life/images.h"
#include "threads/threads.h"

static bool has_code;  // a module has been loaded, or an attach is complete

// Makes the unwind tables, and then tries to verify the runtime's layout until that is settled: in
// the first milliseconds, the runtime runs managed code without a callback. Later, callbacks do it.
static void *settle(void *unused) {
  enum { TRIES = 2000, NAP_US = 1000 };
  struct cs_error err;
  (void)unused;
  HRESULT hr = cs_library_prepare(&err);
  if (FAILED(hr)) cs_log_important("no stack can be walked: %s", err.text);
  for (int i = 0; i < TRIES && SUCCEEDED(hr) && !cs_library_is_settled(); i++) {
    if (cs_load_acquire(&has_code)) (void)cs_library_retry_checks();
    (void)usleep(NAP_US);
  }
  return NULL;
}

// Methods without metadata can be unloaded at any time. Either a callback reports that, or the walk
// has to hold its target.
static void check_dynamic(struct cs_guest *guest) {
  if (!guest->options.dynamic || guest->options.hold || guest->version >= 9) return;
  cs_log_important(
      "CLRSNAP_DYNAMIC=1: the profiler has no ICorProfilerCallback9, which reports that dynamic "
      "methods are unloaded, so its targets are held (CLRSNAP_HOLD=1)");
  guest->options.hold = true;
}

void cs_guest_begin(struct cs_guest *guest, IUnknown *info) {
  struct cs_error err = {""};
  check_dynamic(guest);
  if (FAILED(info->lpVtbl->QueryInterface(info, &IID_ICorProfilerInfo8, (void **)&guest->info))) {
    cs_log_important(
        "the runtime has no ICorProfilerInfo8: the profiler runs on with its own "
        "DoStackSnapshot");
    return;
  }
  struct clrsnap_opts opts = {.size = sizeof opts};
  HRESULT hr = cs_library_begin(info, &opts, &err);
  if (FAILED(hr)) {
    cs_log_important("the profiler runs on with the runtime's own DoStackSnapshot: %s", err.text);
    return;
  }
  guest->client = info;
  guest->first = hr == S_OK;
  cs_store_release(&guest->walks, true);
  if (cs_own_thread_start(settle) != 0)
    cs_log("the thread that prepares walks could not be started: a callback does its work");
}

void cs_guest_attaches(struct cs_guest *guest) {
  if (guest->walks && guest->first) cs_registry_forget_ended(cs_library.info);
}

void cs_guest_attached(struct cs_guest *guest) {
  if (!guest->walks) return;
  cs_library_adopt_threads();
  cs_library_altstacks_soon(true);
  cs_guest_verify_layout(guest, true);
}

// Waits for walks under way. The runtime has already waited for the guest's callbacks, so only a
// guest that breaks the rules of a detach has any.
void cs_guest_end(struct cs_guest *guest) {
  cs_store_release(&guest->walks, false);
  if (guest->client != NULL) cs_library_stop(guest->client);
  guest->client = NULL;
}

void cs_guest_verify_layout(struct cs_guest *guest, bool wait) {
  if (!cs_load_acquire(&guest->walks) || (!wait && !cs_library_is_prepared())) return;
  (void)cs_library_retry_checks();
  if (wait) cs_store_release(&has_code, true);
  cs_library_refresh_after_handlers();
}
