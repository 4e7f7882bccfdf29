// SPDX-License-Identifier: MIT
// logical: CoreCLR's view of a physical stack. Async-signal-safe.
#pragma once

#include "clrsnap/clrsnap.h"
#include "life/eh.h"
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
  bool after_managed;                  // a managed frame was passed, so unmanaged ones make runs
  bool in_run;                         // the last frame was unmanaged
  bool in_dispatch;                    // the last managed frame was exception dispatch
  bool unwound;                        // an exception has unwound the last managed frame
  const struct cs_record *unresolved;  // not NULL: the view ended early, because of this frame
};
void cs_logical_begin(struct cs_logical *view, const struct cs_capture *capture);
bool cs_logical_classify(struct cs_logical *view, struct cs_logical_frame *frame);

// Gets the next frame that is reported. Returns false at the end. Most frames are of ordinary
// jitted methods: these need no cs_logical_classify, whose result would be the same.
static inline bool cs_logical_next(struct cs_logical *view, struct cs_logical_frame *frame) {
  const struct cs_capture *capture = view->capture;
  if (view->next >= capture->count || view->unresolved != NULL || capture->unwound_hi != 0)
    return cs_logical_classify(view, frame);
  const struct cs_record *record = &capture->records[view->next];
  if (record->kind != CS_CODE_JIT || record->function_id == 0 || !record->resolved ||
      record->funclet || record->dynamic || record->eh != CS_EH_NONE)
    return cs_logical_classify(view, frame);
  view->next++;
  view->in_run = view->in_dispatch = false;
  view->after_managed = true;
  *frame = (struct cs_logical_frame){record, record->function_id};
  return true;
}
