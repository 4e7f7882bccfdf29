// SPDX-License-Identifier: MIT
// physical: the report of clrsnap_walk: every activation on the stack. Async-signal-safe.
#pragma once

#include "clrsnap/clrsnap.h"
#include "signal/request.h"

// Calls the callback for each frame, whether or not its function has been resolved.
HRESULT cs_report_frames(const struct cs_capture *capture, clrsnap_frame_callback *callback,
                         void *data);
void cs_report_result(const struct cs_capture *capture, uint64_t held_ns,
                      struct clrsnap_walk_result *result);
