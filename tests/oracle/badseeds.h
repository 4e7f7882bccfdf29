// SPDX-License-Identifier: MIT
// Seeds in places where none should be, on a thread that spins in managed code.
#ifndef ORACLE_BADSEEDS_H
#define ORACLE_BADSEEDS_H

#include "ours.h"

// Sets the callbacks that it wants to hear. In oracle_setup, after ours_start.
void badseeds_setup(ICorProfilerCallback11Vtbl *vtbl);
// Waits for the spinning thread, tries everything on it. On a native thread, once.
void badseeds_run(void);
void badseeds_report(void);

#endif
