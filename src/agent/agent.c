// SPDX-License-Identifier: MIT
// The profiler that the runtime loads. So far: looks whether this runtime can be served, says so in
// one line when it cannot, and otherwise stays loaded without asking for any event.
// Invariant: a refusal fails the load and nothing else; the application never notices. Threads: the
// main thread at start, the diagnostics server's on attach. Signal-safe: no.
#include "base/base.h"
#include "base/log.h"
#include "clr/clr.h"
#include "contract/contract.h"

static ICorProfilerCallback11Vtbl vtbl;
static struct cs_callback profiler = {{&vtbl}, 1, NULL};  // static: never freed
static struct cs_layout layout;

// CORPROF_E_PROFILER_CANCEL_ACTIVATION is the failure that the runtime takes for a decision of the
// profiler's own, not for an error.
static HRESULT start(IUnknown *info, const char *how) {
  struct cs_runtime_version version;
  struct cs_error err = {""};
  if (!cs_runtime_version_get(info, &version)) {
    cs_log_important("the runtime does not tell its version; it runs on without being profiled");
    return CORPROF_E_PROFILER_CANCEL_ACTIVATION;
  }
  if (!cs_contract_read(&layout, &version, &err)) {
    cs_log_important("%s", err.text);
    return CORPROF_E_PROFILER_CANCEL_ACTIVATION;
  }
  cs_log("%s: .NET %u.%u.%u", how, version.major, version.minor, version.build);
  return S_OK;
}

static HRESULT initialize(ICorProfilerCallback11 *self, IUnknown *info) {
  (void)self;
  return start(info, "Initialize");
}

static HRESULT initialize_for_attach(ICorProfilerCallback11 *self, IUnknown *info, void *data,
                                     UINT len) {
  (void)self, (void)data, (void)len;
  return start(info, "InitializeForAttach");
}

HRESULT cs_profiler_create(const GUID *iid, void **out) {
  if (vtbl.QueryInterface == NULL) cs_callback_defaults(&vtbl);
  vtbl.Initialize = initialize;
  vtbl.InitializeForAttach = initialize_for_attach;
  return vtbl.QueryInterface(&profiler.base, iid, out);
}
