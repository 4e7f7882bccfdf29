// SPDX-License-Identifier: MIT
// The library on behalf of a guest: started before its Initialize, ended after its detach.
// Invariants: whatever of it fails, the guest runs on with the runtime's own DoStackSnapshot, and
// the log says why; whether walks can be taken by now is found out here, in the runtime's callbacks
// and on a thread of our own, and never by a walk, which may be in a signal handler. At start-up it
// is found out in the callback for CoreLib, which comes before the runtime calls itself started: it
// refuses all walks until then. Threads: the runtime's callbacks, and one of ours. Not for
// handlers.
#include <unistd.h>

#include "base/log.h"
#include "base/own_thread.h"
#include "clr/clr.h"
#include "dropin/guest.h"
#include "life/equip_soon.h"
#include "life/images.h"
#include "threads/threads.h"

static bool has_code;  // a callback has told of a module, or an attach is complete

// Prepares, and then looks until there is nothing left to look at: in the first milliseconds the
// runtime runs managed code before it calls back again. Later, callbacks go on with it.
static void *settle(void *unused) {
  enum { LOOKS = 2000, LOOK_US = 1000 };
  struct cs_error err;
  (void)unused;
  HRESULT hr = cs_library_prepare(&err);
  if (FAILED(hr)) cs_log_important("no stack can be walked: %s", err.text);
  for (int i = 0; i < LOOKS && SUCCEEDED(hr) && !cs_library_is_settled(); i++) {
    if (cs_load_acquire(&has_code)) (void)cs_library_look();
    (void)usleep(LOOK_US);
  }
  return NULL;
}

// Methods without metadata can die at any time, and a walk must hear of it, or hold its target.
static void check_dynamic(struct cs_guest *guest) {
  if (!guest->options.dynamic || guest->options.hold || guest->version >= 9) return;
  cs_log_important(
      "CLRSNAP_DYNAMIC=1: the profiler has no ICorProfilerCallback9, by which the "
      "death of dynamic methods is told, so its targets are held (CLRSNAP_HOLD=1)");
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
  if (cs_own_thread_start(settle) != 0) cs_log("no thread to prepare walks on: a callback does it");
}

void cs_guest_attaches(struct cs_guest *guest) {
  if (guest->walks && guest->first) cs_registry_forget_ended(cs_library.info);
}

void cs_guest_attached(struct cs_guest *guest) {
  if (!guest->walks) return;
  cs_library_adopt_threads();
  cs_library_equip_soon(true);
  cs_guest_look(guest, true);
}

// Walks under way end first: with the runtime's own callbacks over, nothing else of the guest's is
// in the library (the runtime has waited for it), but for what it should not be.
void cs_guest_end(struct cs_guest *guest) {
  cs_store_release(&guest->walks, false);
  if (guest->client != NULL) cs_library_stop(guest->client);
  guest->client = NULL;
}

void cs_guest_look(struct cs_guest *guest, bool wait) {
  if (!cs_load_acquire(&guest->walks) || (!wait && !cs_library_is_prepared())) return;
  (void)cs_library_look();
  if (wait) cs_store_release(&has_code, true);
  cs_library_refresh_after_handlers();
}
