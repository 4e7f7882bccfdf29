// SPDX-License-Identifier: MIT
// A recording's beginning and end. Not for handlers.
#pragma once

#include <stddef.h>

#include "clr/clr.h"

// How to reach the command: by the path of its memory, or, on an attach, by an invitation, which
// has not been verified.
struct cs_agent_start_options {
  bool attached;
  const char *path;
  const void *invitation;
  size_t size;
};
// Maps and claims the shared memory, and starts the library and the agent's thread. Returns the
// result of Initialize. Waits, 4 s at most, for a recording that is just ending or whose command
// was killed. On an attach, the command is told why there is no recording, if so.
HRESULT cs_agent_start(IUnknown *info, const struct cs_agent_start_options *options);
// Called when the process ends: ends the recording, if there is one, and waits until its last
// record is written, 2 s at most. Any thread.
void cs_agent_stop(void);
