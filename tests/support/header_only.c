// SPDX-License-Identifier: MIT
// The public header alone, as a profiler's author includes it: compiled as C11 and as C++17.
#include "clrsnap/corprof.h"

// Uses both things that a caller has to write: a callback, and a call through a slot.
static HRESULT on_frame(FunctionID function, UINT_PTR ip, COR_PRF_FRAME_INFO frame, ULONG32 size,
                        BYTE context[], void *data) {
  (void)function, (void)ip, (void)frame, (void)size, (void)context, (void)data;
  return S_OK;
}

HRESULT header_only_walk(ICorProfilerInfo2 *info);
HRESULT header_only_walk(ICorProfilerInfo2 *info) {
  return info->lpVtbl->DoStackSnapshot(info, 0, on_frame, COR_PRF_SNAPSHOT_DEFAULT, NULL, NULL, 0);
}
