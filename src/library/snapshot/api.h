// SPDX-License-Identifier: MIT
// api: what the agent adds to the public API. Not for handlers.
#pragma once

#include "clrsnap/clrsnap.h"

// Makes clrsnap_thread_destroyed call this first, on the thread itself. NULL: no longer.
void cs_on_thread_end(void (*call)(ThreadID id));
