// SPDX-License-Identifier: MIT
// The library on behalf of a guest: started before its Initialize, ended after its detach.
// Invariant: whatever of it fails, the guest runs on with the runtime's own DoStackSnapshot, and
// the log says why. Threads: the runtime's callbacks, and the guest's own. Not for handlers.
#include "base/log.h"
#include "clr/clr.h"
#include "dropin/guest.h"

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
  if (FAILED(cs_core_start(info, &opts, &err))) {
    cs_log_important("the profiler runs on with the runtime's own DoStackSnapshot: %s", err.text);
    return;
  }
  guest->client = info;
  guest->walks = true;
}

// Walks under way end first: with the runtime's own callbacks over, nothing else of the guest's is
// in the library (the runtime has waited for it), but for what it should not be.
void cs_guest_end(struct cs_guest *guest) {
  cs_store_release(&guest->walks, false);
  if (guest->client != NULL) cs_core_stop(guest->client);
  guest->client = NULL;
}

bool cs_guest_ready(struct cs_guest *guest) {
  if (!cs_load_acquire(&guest->walks)) return false;
  if (cs_load_acquire(&guest->ready)) return true;
  if (clrsnap_ready() != S_OK) return false;
  cs_store_release(&guest->ready, true);
  return true;
}
