// SPDX-License-Identifier: MIT
// The contract's view of a physical stack, as CoreCLR's own DoStackSnapshot reports it (contract:
// C1, C2, C11). Pure; any thread. How the physical frames are reported:
//   one callback per managed frame, and one per run of unmanaged frames below managed code;
// a funclet and the method that it is part of are one frame: the method's, at the place where it
// was when the exception was thrown; the frames between them have been unwound and are left out;
//   frames that an exception has unwound, but that are still on the stack, are left out;
//   filters run before anything is unwound: they are frames of their own;
//   the runtime's managed exception dispatch is left out, with the unmanaged frames around it.
// Invariant: frames come in the order of the capture, each at most once.
#include "snapshot/logical.h"

#include "life/eh.h"

void cs_logical_begin(struct cs_logical *view, const struct cs_capture *capture) {
  *view = (struct cs_logical){.capture = capture};
}

// Returns the managed record at `i`. If its method is not known, returns NULL and ends the view.
static const struct cs_record *managed_at(struct cs_logical *view, uint32_t i) {
  const struct cs_record *record = &view->capture->records[i];
  if (record->resolved) return record;
  view->unresolved = record;
  return NULL;
}

// Returns the first managed frame from `i` on, or capture->count if there is none.
static uint32_t next_managed(const struct cs_capture *capture, uint32_t i) {
  while (i < capture->count && !cs_record_is_managed(&capture->records[i])) i++;
  return i;
}

// Returns the role of the caller of the unmanaged frames from `i` on. Where the dispatch's call is
// not inlined, a stub lies in between.
static enum cs_eh_role role_below(struct cs_logical *view, uint32_t i) {
  for (i = next_managed(view->capture, i); i < view->capture->count;
       i = next_managed(view->capture, i + 1)) {
    const struct cs_record *record = managed_at(view, i);
    if (record == NULL) return CS_EH_NONE;
    if (!record->dynamic) return (enum cs_eh_role)record->eh;
  }
  return CS_EH_NONE;
}

// Returns the exception whose dispatch has called the funclet at `i`: the dispatch keeps it on the
// stack, next to what it calls. Returns NULL if it was not noted.
static const struct cs_exception *exception_of(const struct cs_capture *capture, uint32_t i) {
  uint64_t sp = cs_record_sp(&capture->records[i]);
  for (uint32_t k = 0; k < capture->exception_count; k++)
    if (capture->exceptions[k].at > sp) return &capture->exceptions[k];
  return NULL;
}

// Returns whether the funclet at `i` is a filter, by the exception's pass, or, where that is not
// known, by the caller. The dispatch calls filters through stubs and, where nothing is inlined
// (under a profiler's hooks), through small methods of its own.
static bool is_filter(struct cs_logical *view, uint32_t i) {
  const struct cs_exception *exception = exception_of(view->capture, i);
  if (exception != NULL) return exception->first_pass;
  for (i = next_managed(view->capture, i + 1); i < view->capture->count;
       i = next_managed(view->capture, i + 1)) {
    const struct cs_record *record = managed_at(view, i);
    if (record == NULL) return false;
    if (record->eh == CS_EH_FILTER_CALLER) return true;
    if (record->eh == CS_EH_NONE && !record->dynamic) return false;
  }
  return false;
}

// Returns whether the frame at `i` can be a funclet that is not a filter. Jitted code has a mark;
// in ReadyToRun images a funclet is a function of its own, called by the runtime or by its method.
static bool may_be_funclet(struct cs_logical *view, uint32_t i) {
  const struct cs_capture *capture = view->capture;
  const struct cs_record *record = &capture->records[i];
  if (!record->funclet && record->kind == CS_CODE_JIT) return false;
  if (i + 1 >= capture->count) return false;
  if (!cs_record_is_managed(&capture->records[i + 1])) return !is_filter(view, i);
  if (record->funclet) return true;
  const struct cs_record *below = managed_at(view, i + 1);
  return below != NULL && below->function_id == record->function_id;
}

// Returns the frame that the funclet at `i` is part of: the same method at another start, with the
// same frame pointer, which a funclet takes over. Returns `i` if there is none: then the frame is
// not a funclet.
static uint32_t parent_of(struct cs_logical *view, uint32_t i) {
  const struct cs_capture *capture = view->capture;
  const struct cs_record *funclet = &capture->records[i];
  for (uint32_t k = i + 1; k < capture->count; k++) {
    const struct cs_record *record = &capture->records[k];
    if (record->kind != funclet->kind || record->funclet ||
        record->preserved[CS_PRESERVED_FP] != funclet->preserved[CS_PRESERVED_FP] ||
        (!funclet->funclet && record->method_start == funclet->method_start))
      continue;
    if (managed_at(view, k) == NULL) return i;
    if (record->function_id == funclet->function_id) return k;
  }
  return i;
}

// Returns whether the unmanaged frame at `i` starts a run that is reported. The frames through
// which the dispatch has called a funclet are not reported, unless that funclet has been unwound
// meanwhile.
static bool starts_run(struct cs_logical *view, uint32_t i) {
  bool starts = view->after_managed && !view->in_run && !view->in_dispatch &&
                (view->unwound || role_below(view, i) == CS_EH_NONE);
  view->in_run = true;
  return starts && view->unresolved == NULL;
}

// Returns whether the current exception has unwound the frame at `i`. The sp of a frame's caller is
// that of the next frame.
static bool is_unwound(const struct cs_capture *capture, uint32_t i) {
  if (capture->unwound_hi == 0 || i + 1 >= capture->count) return false;
  uint64_t callers_sp = cs_record_sp(&capture->records[i + 1]);
  return callers_sp > capture->unwound_lo && callers_sp <= capture->unwound_hi;
}

// Returns whether the managed frame at `i` is reported. For a funclet, moves on to its method's
// frame.
static bool reports_managed(struct cs_logical *view, uint32_t i, struct cs_logical_frame *frame) {
  const struct cs_record *record = managed_at(view, i);
  if (record == NULL) return false;
  view->in_run = false;
  view->in_dispatch = record->eh != CS_EH_NONE;
  if (view->in_dispatch) return false;
  view->after_managed = true;
  view->unwound = is_unwound(view->capture, i);
  if (view->unwound) return false;
  while (may_be_funclet(view, i)) {
    uint32_t parent = parent_of(view, i);
    if (parent == i) break;
    i = parent;
    view->next = i + 1;
    frame->record = &view->capture->records[i];
  }
  frame->function = record->function_id;
  if (record->dynamic && !view->report_dynamic) return false;
  return record->function_id != 0 && view->unresolved == NULL;
}

bool cs_logical_classify(struct cs_logical *view, struct cs_logical_frame *frame) {
  const struct cs_capture *capture = view->capture;
  while (view->next < capture->count && view->unresolved == NULL) {
    uint32_t i = view->next++;
    *frame = (struct cs_logical_frame){.record = &capture->records[i]};
    bool managed = cs_record_is_managed(frame->record);
    if (managed ? reports_managed(view, i, frame) : starts_run(view, i)) return true;
  }
  return false;
}
