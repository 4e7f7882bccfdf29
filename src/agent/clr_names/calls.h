// SPDX-License-Identifier: MIT
// Finds where a method's IL calls another method. Any thread that may call the CLR, while both
// methods are known to be alive. Not for handlers.
#pragma once

#include <stdbool.h>

#include "clrsnap/corprof.h"

// Sets *il to the IL offset of the only call in `caller` that can be to `callee`, which was inlined
// there. Returns false if there is no such call, or several, or if the IL cannot be read.
bool cs_call_find(ICorProfilerInfo15 *info, FunctionID caller, FunctionID callee, uint32_t *il);
