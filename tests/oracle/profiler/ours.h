// SPDX-License-Identifier: MIT
// The library under test, as the proofs use it: through its public header only.
#pragma once

#include "clrsnap/clrsnap.h"
#include "stack.h"

// Starts the library (in oracle_setup) and wires the callbacks that the library needs.
// `flags`: enum clrsnap_flag.
void ours_start(ICorProfilerCallback11Vtbl *vtbl, uint32_t flags);
// Set before ours_start: the ICorProfilerInfo that the library is given; NULL stands for
// oracle_info itself.
extern IUnknown *ours_info;
// Set before ours_start: the time after which a held thread runs on by itself.
extern uint32_t ours_hold_timeout_ms;
// The event mask that the library needs.
DWORD ours_mask(DWORD *high);
// Waits until walks are possible (native threads only). Returns false, after reporting a failure,
// if they are not.
bool ours_ready(void);
// The same as stack_by_clr, but by clrsnap_snapshot.
void stack_by_ours(struct stack *stack, ThreadID thread, ULONG32 flags);
