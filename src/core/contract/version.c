// SPDX-License-Identifier: MIT
// The runtime's version as the profiling API tells it. On its own, so that who reads another
// process' contract needs nothing of the profiling API. Invariant: 0.0.0 when it is not told. Any
// thread that may call the API. Signal-safe: no.
#include <string.h>

#include "contract/contract.h"

bool cs_runtime_version_get(IUnknown *unknown, struct cs_runtime_version *out) {
  ICorProfilerInfo3 *info = NULL;
  memset(out, 0, sizeof *out);
  if (FAILED(unknown->lpVtbl->QueryInterface(unknown, &IID_ICorProfilerInfo3, (void **)&info))) {
    return false;
  }
  USHORT instance, qfe;
  COR_PRF_RUNTIME_TYPE type;
  HRESULT hr = info->lpVtbl->GetRuntimeInformation(info, &instance, &type, &out->major, &out->minor,
                                                   &out->build, &qfe, 0, NULL, NULL);
  (void)info->lpVtbl->Release(info);
  return SUCCEEDED(hr) && out->major != 0;
}
