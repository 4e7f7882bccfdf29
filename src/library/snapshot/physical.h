// SPDX-License-Identifier: MIT
// physical: the report of clrsnap_walk: every activation on the stack. Async-signal-safe.
#pragma once

#include "clrsnap/clrsnap.h"
#include "signal/request.h"

// Of functions that are resolved as far as they are to be.
HRESULT cs_report_frames(const struct cs_capture *capture, clrsnap_frame_callback *callback,
                         void *data);
void cs_report_result(const struct cs_capture *capture, uint64_t held_ns,
                      struct clrsnap_walk_result *result);
