// SPDX-License-Identifier: MIT
// Where a method's IL calls another one. Any thread that may call the CLR, while both methods are
// known to be alive. Not for handlers.
#ifndef CS_CLR_NAMES_CALLS_H
#define CS_CLR_NAMES_CALLS_H

#include <stdbool.h>

#include "clrsnap/corprof.h"

// The IL offset of the only call in `caller` that can be to `callee`, which was inlined there.
// False: there is none, there are several, or it cannot be told.
bool cs_call_find(ICorProfilerInfo15 *info, FunctionID caller, FunctionID callee, uint32_t *il);

#endif
