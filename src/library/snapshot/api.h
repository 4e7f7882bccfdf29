// SPDX-License-Identifier: MIT
// api: what the agent adds to the public API. Not for handlers.
#pragma once

#include "clrsnap/clrsnap.h"

// From now on clrsnap_thread_destroyed calls this first, on the thread itself; NULL: no more.
void cs_on_thread_end(void (*call)(ThreadID id));
