// SPDX-License-Identifier: MIT
// Reports a physical walk: every activation, as it was found. Any thread; as async-signal-safe as
// the callback.
#include "snapshot/physical.h"

static uint32_t kind_of(const struct cs_record *record) {
  switch ((enum cs_code_kind)record->kind) {
    case CS_CODE_JIT:
      return CLRSNAP_FRAME_MANAGED_JIT;
    case CS_CODE_R2R:
      return CLRSNAP_FRAME_MANAGED_R2R;
    case CS_CODE_STUB:
      return CLRSNAP_FRAME_STUB;
    default:
      return CLRSNAP_FRAME_NATIVE;
  }
}

// A frame is reported whether or not its function is known.
static void describe(const struct cs_record *record, struct clrsnap_frame *frame) {
  *frame = (struct clrsnap_frame){
      .ip = cs_record_ip(record),
      .sp = cs_record_sp(record),
      .method_start = record->method_start,
      .function = record->function_id,
      .kind = kind_of(record),
      .flags = record->flags | (record->funclet ? CLRSNAP_FRAME_FUNCLET : 0u),
  };
}

HRESULT cs_report_frames(const struct cs_capture *capture, clrsnap_frame_callback *callback,
                         void *data) {
  for (uint32_t i = 0; i < capture->count; i++) {
    struct clrsnap_frame frame;
    describe(&capture->records[i], &frame);
    if (callback(&frame, data) != S_OK) return CORPROF_E_STACKSNAPSHOT_ABORTED;
  }
  return S_OK;
}

void cs_report_result(const struct cs_capture *capture, uint64_t held_ns,
                      struct clrsnap_walk_result *result) {
  *result = (struct clrsnap_walk_result){
      .size = sizeof *result,
      .stop = (uint32_t)capture->stop,
      .frames = capture->count,
      .stop_ip = capture->stop_ip,
      .held_ns = held_ns,
      .flags = capture->asleep ? CLRSNAP_WALK_ASLEEP : 0u,
  };
}
