// SPDX-License-Identifier: MIT
// Passes a resolved capture to a DoStackSnapshot callback, frame by frame. Any thread; with a NULL
// `err` as async-signal-safe as the callback. Invariant: the CLR is not called (contract: C20), and
// no further callback is made after one that does not return S_OK.
#include "snapshot/deliver.h"

#include <string.h>

#include "base/clock.h"
#include "life/library.h"
#include "snapshot/context.h"
#include "snapshot/logical.h"

enum { CONTEXT_BYTES = 4096 };  // more than any runtime's CONTEXT: 3,232 on .NET 10

// CoreCLR carries one CONTEXT down the stack, so ContextFlags are those of its source: the seed, if
// it is used; none for an unseeded walk of the calling thread, which starts at a Frame; and from a
// hardware fault on, those of the fault. For another thread, which CoreCLR on Linux does not walk,
// the flags say which registers are filled in.
static uint32_t context_flags(const struct cs_delivery *to, const struct cs_capture *capture,
                              const struct cs_record *record) {
  uint32_t flags = capture->seeded ? to->seed_flags : to->context_flags, from = 0;
  uint32_t at = (uint32_t)(record - capture->records);
  for (uint32_t i = 0; i < capture->fault_count; i++)
    if (at >= capture->faults[i].from) {
      flags = capture->faults[i].flags;
      from = capture->faults[i].from;
    }
  for (; from < at; from++)
    if (cs_record_is_managed(&capture->records[from])) return cs_context_unwound(flags);
  return flags;
}

static HRESULT call(const struct cs_delivery *to, FunctionID function, UINT_PTR ip, uint32_t size,
                    BYTE *context) {
  COR_PRF_FRAME_INFO_INTERNAL info = {
      .size = sizeof info,
      .version = 1,
      .funcID = function,
      .IP = ip,
  };
  return to->callback(function, ip, (COR_PRF_FRAME_INFO)&info, size, context, to->data);
}

static HRESULT deliver_context(const struct cs_delivery *to, const struct cs_capture *capture,
                               const struct cs_logical_frame *frame) {
  BYTE context[CONTEXT_BYTES] __attribute__((aligned(16)));
  const struct cs_record *record = frame->record;
  uint32_t size = cs_library.world.layout.context_size;
  if (size < CS_CONTEXT_MIN || size > CONTEXT_BYTES) size = CS_CONTEXT_MIN;
  cs_context_of_record(context, size, record, context_flags(to, capture, record));
  cs_context_set_ip(context, cs_record_call_ip(record));
  return call(to, frame->function, cs_record_call_ip(record), size, context);
}

static HRESULT deliver_frame(const struct cs_delivery *to, const struct cs_capture *capture,
                             const struct cs_logical_frame *frame) {
  if (to->info_flags & COR_PRF_SNAPSHOT_REGISTER_CONTEXT)
    return deliver_context(to, capture, frame);
  return call(to, frame->function, cs_record_call_ip(frame->record), 0, NULL);
}

static HRESULT is_aborted(struct cs_error *err) {
  cs_error_set(err, "the callback ended the walk");
  return CORPROF_E_STACKSNAPSHOT_ABORTED;
}

HRESULT cs_deliver_reported(const struct cs_reported *reported, uint32_t count,
                            const struct cs_delivery *to, struct cs_error *err) {
  for (uint32_t i = 0; i < count; i++)
    if (call(to, reported[i].function, reported[i].ip, 0, NULL) != S_OK) return is_aborted(err);
  return S_OK;
}

// Returns whether the hold's time is up, because a callback took longer. Then the rest of the
// frames is stale, or will be: a target that gets no processor ends its hold late.
static bool is_over(const struct cs_delivery *to) {
  return to->held != NULL &&
         (cs_clock_now_ns() >= cs_request_hold_end(to->held) ||
          CS_REQUEST_STATE(cs_load_acquire(&to->held->word)) != CS_REQUEST_HELD);
}

HRESULT cs_deliver(const struct cs_capture *capture, const struct cs_delivery *to,
                   struct cs_error *err) {
  struct cs_logical view;
  struct cs_logical_frame frame;
  cs_logical_begin(&view, capture);
  view.report_dynamic = (to->flags & CLRSNAP_REPORT_DYNAMIC) != 0;
  while (cs_logical_next(&view, &frame)) {
    if (is_over(to)) {
      cs_error_set(err, "the hold timed out within a callback, and the thread has run on");
      return CORPROF_E_STACKSNAPSHOT_UNSAFE;
    }
    if (deliver_frame(to, capture, &frame) == S_OK) continue;
    return is_aborted(err);
  }
  if (view.unresolved != NULL) {
    cs_error_set(err, "the runtime did not say which method the frame at 0x%llx belongs to",
                 (unsigned long long)cs_record_ip(view.unresolved));
    return E_FAIL;
  }
  if (capture->stop == CS_STOP_BASE) return S_OK;
  cs_error_set(err, "the walk ended early at 0x%llx: %s", (unsigned long long)capture->stop_ip,
               cs_stop_text(capture->stop));
  return E_FAIL;
}
