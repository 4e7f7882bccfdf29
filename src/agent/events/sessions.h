// SPDX-License-Identifier: MIT
// The EventPipe sessions that the modes need. The agent's thread only, unless stated otherwise; not
// for handlers.
#pragma once

#include "base/error.h"
#include "state/state.h"

static inline bool cs_sessions_want_locks(void) {
  return cs_wants(CS_WIRE_MODE_LOCK) || cs_wants(CS_WIRE_MODE_HOLDERS);
}

// Starts them. Returns false if there are none, for the reason in *err. Takes 10 s at most.
bool cs_sessions_start(struct cs_error *err);
// Stops them. Takes 2 s at most.
void cs_sessions_stop(void);
// Returns whether a call that starts or stops sessions has not returned in time, and is still in
// the runtime. Then the runtime must not be asked to detach the profiler.
bool cs_sessions_are_stuck(void);
