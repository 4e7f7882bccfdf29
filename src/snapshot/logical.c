// SPDX-License-Identifier: MIT
// The contract's view of a physical stack, as CoreCLR's own DoStackSnapshot reports it (contract:
// C1, C2, C11). Pure but for the resolver; any thread. What it makes of the physical frames:
//   one callback per managed frame, and one per run of unmanaged frames below managed code;
//   a funclet and the method that it is part of are one frame: the method's, where it stood when
//   the exception was thrown; what lies between them has been unwound already and is left out;
//   frames that an exception has unwound, but that are still on the stack, are left out;
//   filters run before anything is unwound: they are frames of their own;
//   the runtime's managed exception dispatch is left out, with the unmanaged frames around it.
// Invariant: frames come in the order of the capture, each at most once.
#include "snapshot/snapshot.h"

void cs_logical_begin(struct cs_logical *view, const struct cs_capture *capture,
                      cs_resolve *resolve) {
  *view = (struct cs_logical){.capture = capture, .resolve = resolve};
}

static bool resolve(struct cs_logical *view, uint32_t i, struct cs_function *function) {
  if (view->resolve(&view->capture->records[i], function)) return true;
  view->unresolved = true;
  return false;
}

// The first managed frame from `i` on; capture->count if there is none.
static uint32_t next_managed(const struct cs_capture *capture, uint32_t i) {
  while (i < capture->count && !cs_record_is_managed(&capture->records[i])) i++;
  return i;
}

// What the unmanaged frames from `i` on lead to.
static enum cs_eh_role role_below(struct cs_logical *view, uint32_t i) {
  struct cs_function function;
  uint32_t managed = next_managed(view->capture, i);
  if (managed == view->capture->count || !resolve(view, managed, &function)) return CS_EH_NONE;
  return function.eh;
}

// Do the frames from `i` on call a filter? The dispatch calls it by way of stubs and, where it has
// been compiled anew (a profiler's hooks do that), of small methods of its own.
static bool calls_filter(struct cs_logical *view, uint32_t i) {
  struct cs_function function;
  for (i = next_managed(view->capture, i); i < view->capture->count;
       i = next_managed(view->capture, i + 1)) {
    if (!resolve(view, i, &function)) return false;
    if (function.eh == CS_EH_FILTER_CALLER) return true;
    if (function.eh == CS_EH_NONE && !function.dynamic) return false;
  }
  return false;
}

// Can the frame at `i` be a funclet that is no filter? Jitted code says so itself; in ReadyToRun
// images a funclet is a function of its own, called by the runtime or by its method.
static bool may_be_funclet(struct cs_logical *view, uint32_t i,
                           const struct cs_function *function) {
  const struct cs_capture *capture = view->capture;
  const struct cs_record *record = &capture->records[i];
  struct cs_function below;
  if (!record->funclet && record->kind == CS_CODE_JIT) return false;
  if (i + 1 >= capture->count) return false;
  if (!cs_record_is_managed(&capture->records[i + 1])) return !calls_filter(view, i + 1);
  return record->funclet || (resolve(view, i + 1, &below) && below.id == function->id);
}

// The frame that the funclet at `i` is part of: the same method at another start, with the same
// frame pointer, which a funclet takes over. `i` itself when there is none: then it is no funclet.
static uint32_t parent_of(struct cs_logical *view, uint32_t i, const struct cs_function *function) {
  const struct cs_capture *capture = view->capture;
  const struct cs_record *funclet = &capture->records[i];
  for (uint32_t k = i + 1; k < capture->count; k++) {
    const struct cs_record *record = &capture->records[k];
    struct cs_function other;
    if (record->kind != funclet->kind || record->funclet ||
        record->preserved[CS_PRESERVED_RBP] != funclet->preserved[CS_PRESERVED_RBP] ||
        (!funclet->funclet && record->method_start == funclet->method_start))
      continue;
    if (!resolve(view, k, &other)) return i;
    if (other.id == function->id) return k;
  }
  return i;
}

// Unmanaged frame at `i`: does it start a run that is reported?
static bool starts_run(struct cs_logical *view, uint32_t i) {
  bool starts = view->managed_seen && !view->in_run && !view->in_dispatch &&
                role_below(view, i) == CS_EH_NONE;
  view->in_run = true;
  return starts && !view->unresolved;
}

// Has the exception under way unwound the frame at `i`? (A frame's caller's sp is that of the
// next.)
static bool is_unwound(const struct cs_capture *capture, uint32_t i) {
  if (capture->unwound_hi == 0 || i + 1 >= capture->count) return false;
  uint64_t callers_sp = cs_record_sp(&capture->records[i + 1]);
  return callers_sp > capture->unwound_lo && callers_sp <= capture->unwound_hi;
}

// Managed frame at `i`: is it reported? A funclet moves on to its method's frame.
static bool reports_managed(struct cs_logical *view, uint32_t i, struct cs_logical_frame *frame) {
  struct cs_function *function = &frame->function;
  if (!resolve(view, i, function)) return false;
  view->in_run = false;
  view->in_dispatch = function->eh != CS_EH_NONE;
  if (view->in_dispatch) return false;
  view->managed_seen = true;
  if (is_unwound(view->capture, i)) return false;
  while (may_be_funclet(view, i, function)) {
    uint32_t parent = parent_of(view, i, function);
    if (parent == i) break;
    i = parent;
    view->next = i + 1;
    frame->record = &view->capture->records[i];
  }
  if (function->dynamic && !view->report_dynamic) return false;
  return function->id != 0 && !view->unresolved;
}

bool cs_logical_next(struct cs_logical *view, struct cs_logical_frame *frame) {
  const struct cs_capture *capture = view->capture;
  while (view->next < capture->count && !view->unresolved) {
    uint32_t i = view->next++;
    *frame = (struct cs_logical_frame){.record = &capture->records[i]};
    bool managed = cs_record_is_managed(frame->record);
    if (managed ? reports_managed(view, i, frame) : starts_run(view, i)) return true;
  }
  return false;
}
