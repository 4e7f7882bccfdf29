// SPDX-License-Identifier: MIT
// Gets the runtime's version from the profiling API. It has a file of its own so that code that
// reads another process's contract does not depend on the profiling API. Invariant: 0.0.0 if it is
// not available. Any thread that may call the API. Signal-safe: no.
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
