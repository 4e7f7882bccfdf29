// SPDX-License-Identifier: MIT
// The library under test, as the proofs use it: through its public header only.
#ifndef ORACLE_OURS_H
#define ORACLE_OURS_H

#include "clrsnap/clrsnap.h"
#include "stack.h"

// Starts the library (in oracle_setup) and wires the callbacks that it wants to hear of.
// `flags`: enum clrsnap_flag.
void ours_start(ICorProfilerCallback11Vtbl *vtbl, uint32_t flags);
// Before ours_start: what the library is given as the profiler's info; NULL: oracle_info itself.
extern IUnknown *ours_info;
// Before ours_start: after how long a held thread runs on by itself.
extern uint32_t ours_hold_timeout_ms;
// What it wants to see in the event mask.
DWORD ours_mask(DWORD *high);
// Waits until walks may be taken (native threads only). False and a failure: they may not.
bool ours_ready(void);
// As stack_by_clr, by clrsnap_snapshot.
void stack_by_ours(struct stack *stack, ThreadID thread, ULONG32 flags);

#endif
