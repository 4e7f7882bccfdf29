// SPDX-License-Identifier: MIT
// logical: CoreCLR's view of a physical stack. Async-signal-safe.
#ifndef CS_SNAPSHOT_LOGICAL_H
#define CS_SNAPSHOT_LOGICAL_H

#include "clrsnap/clrsnap.h"
#include "signal/request.h"

// A view of a capture whose managed records have been resolved.
struct cs_logical_frame {
  const struct cs_record *record;  // the managed frame, or a run's first (youngest) frame
  FunctionID function;             // 0: a run of unmanaged frames
};
struct cs_logical {
  const struct cs_capture *capture;
  uint32_t next;
  bool report_dynamic;
  bool managed_seen;  // a managed frame has been passed: unmanaged ones make runs from now on
  bool in_run;        // the last frame was unmanaged
  bool in_dispatch;   // the last managed frame was exception dispatch
  const struct cs_record *unresolved;  // not NULL: the view ended early, because of this frame
};
void cs_logical_begin(struct cs_logical *view, const struct cs_capture *capture);
bool cs_logical_next(struct cs_logical *view, struct cs_logical_frame *frame);

#endif
