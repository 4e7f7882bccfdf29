// SPDX-License-Identifier: MIT
// complete: looks up what a fast walk has left open. Async-signal-safe.
#pragma once

#include "signal/request.h"

// Touches the memory of the look-ups, since the first use of a page takes a microsecond. Not for
// handlers.
void cs_capture_prepare(void);
// Looks up method starts, the functions that code headers name, and what is already known of these.
void cs_capture_complete(struct cs_capture *capture);
