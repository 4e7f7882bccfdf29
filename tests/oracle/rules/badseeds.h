// SPDX-License-Identifier: MIT
// Seeds in places where none should be, on a thread that spins in managed code.
#pragma once

#include "ours.h"

// Sets the callbacks that it needs. Called in oracle_setup, after ours_start.
void badseeds_setup(ICorProfilerCallback11Vtbl *vtbl);
// Waits for the spinning thread, and tries every seed on it. Called once, on a native thread.
void badseeds_run(void);
void badseeds_report(void);
