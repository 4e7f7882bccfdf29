// SPDX-License-Identifier: MIT
// A profiler that loads, asks for no events and does nothing: what the class stands for in a build
// without the room agent. Weak, so that the agent's definition takes its place.
// Invariant: one static object, never freed. Threads: any. Signal-safe: no.
#include "base/base.h"
#include "clr/clr.h"

static ICorProfilerCallback11Vtbl vtbl;
static struct cs_callback idle = {{&vtbl}, 1, NULL};

__attribute__((weak)) HRESULT cs_profiler_create(const GUID *iid, void **out) {
  if (vtbl.QueryInterface == NULL) cs_callback_defaults(&vtbl);
  return vtbl.QueryInterface(&idle.base, iid, out);
}
