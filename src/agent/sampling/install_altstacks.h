// SPDX-License-Identifier: MIT
// Larger alternate stacks for threads that existed before the agent. A thread is sent signals, and
// has an engine, only once it has its larger stack (docs/signal-safety.md, "Alternate stacks"). The
// agent's thread only. Not for handlers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

void cs_altstacks_begin(void);  // before the first signal
// Asks threads that slept in foreign code and have run since. Returns when the next call is due.
uint64_t cs_altstacks_check(uint64_t now_ns);
uint64_t cs_altstacks_stops(void);  // how often the runtime was stopped for them in this recording
bool cs_altstacks_report(void);     // CS_WIRE_STOPS, if it was; false: no room
