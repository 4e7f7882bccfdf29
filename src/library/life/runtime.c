// SPDX-License-Identifier: MIT
// What the runtime itself says about snapshots. Calls the CLR; any thread that may; not for
// handlers.
//
// Invariant: DoStackSnapshot is called with unknown flags, which CoreCLR refuses after it
// has checked that it has started and that the event mask allows snapshots. So nothing is walked.
#include "life/runtime.h"

#include "life/library.h"

static HRESULT never_called(FunctionID function, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 size,
                            BYTE context[], void *data) {
  (void)function, (void)ip, (void)info, (void)size, (void)context, (void)data;
  return E_FAIL;
}

HRESULT cs_runtime_probe(ICorProfilerInfo15 *info) {
  return info->lpVtbl->DoStackSnapshot(info, 0, never_called, ~0u, NULL, NULL, 0);
}

static bool checked;
bool cs_runtime_checked(void) {
  return cs_library.info == NULL || cs_load_relaxed(&checked);
}

HRESULT cs_runtime_check(bool known, struct cs_error *err) {
  ICorProfilerInfo15 *info = cs_library.info;
  DWORD mask = 0;
  if (info == NULL || (known && cs_runtime_checked())) return S_OK;
  // A runtime that has started stays so, and it is enough if this profiler's own mask has the flag.
  if (cs_runtime_checked() && info->lpVtbl->GetEventMask(info, &mask) == S_OK &&
      (mask & COR_PRF_ENABLE_STACK_SNAPSHOT) != 0)
    return S_OK;
  HRESULT hr = cs_runtime_probe(info);
  if (hr == CORPROF_E_STACKSNAPSHOT_UNSAFE) {
    cs_error_set(err, "the runtime has not started yet");
    return hr;
  }
  if (hr == CORPROF_E_INCONSISTENT_WITH_FLAGS) {
    cs_error_set(err, "COR_PRF_ENABLE_STACK_SNAPSHOT is not in the profiler's event mask");
    return hr;
  }
  cs_store_relaxed(&checked, true);
  return S_OK;
}
