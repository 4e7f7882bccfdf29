// SPDX-License-Identifier: MIT
// The contract's view of a physical stack: one callback per managed frame, one per run of unmanaged
// frames, as CoreCLR's own DoStackSnapshot reports them (contract: C1, C2, C11). Pure; any thread.
//
// Invariant: frames come in the order of the capture, each at most once.
#include "snapshot/snapshot.h"

void cs_logical_begin(struct cs_logical *view, const struct cs_capture *capture,
                      cs_resolve *resolve) {
  *view = (struct cs_logical){.capture = capture, .resolve = resolve};
}

// A run is reported at its youngest frame, and only below managed code: unmanaged code on top of
// the stack makes no callback.
static bool starts_run(struct cs_logical *view) {
  bool starts = view->managed_seen && !view->in_run;
  view->in_run = true;
  return starts;
}

bool cs_logical_next(struct cs_logical *view, struct cs_logical_frame *frame) {
  const struct cs_capture *capture = view->capture;
  while (view->next < capture->count && !view->unresolved) {
    const struct cs_record *record = &capture->records[view->next++];
    *frame = (struct cs_logical_frame){.record = record};
    if (!cs_record_is_managed(record)) {
      if (starts_run(view)) return true;
      continue;
    }
    if (!view->resolve(record, &frame->function)) {
      view->unresolved = true;
      return false;
    }
    view->managed_seen = true;
    view->in_run = false;
    if (frame->function.dynamic && !view->report_dynamic) continue;
    if (frame->function.id != 0) return true;
  }
  return false;
}
