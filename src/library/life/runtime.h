// SPDX-License-Identifier: MIT
// runtime: what the runtime itself says about snapshots, asked by a DoStackSnapshot that walks
// nothing. Calls the CLR; not for handlers.
#pragma once

#include "base/error.h"
#include "clrsnap/clrsnap.h"

// CORPROF_E_STACKSNAPSHOT_UNSAFE: the runtime has not started yet.
// CORPROF_E_INCONSISTENT_WITH_FLAGS: the event mask does not allow snapshots. Any other: it has
// started, and the mask allows them.
HRESULT cs_runtime_probe(ICorProfilerInfo15 *info);
// The same for the library's own `info`, as S_OK or an error with its reason. With `known` the
// runtime is not asked again once the check has passed.
HRESULT cs_runtime_check(bool known, struct cs_error *err);
bool cs_runtime_checked(void);  // passed once
