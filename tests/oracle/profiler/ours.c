// SPDX-License-Identifier: MIT
// Wires the library into a proof's profiler exactly as its public header says. Threads: as the
// runtime calls. Signal-safe: no.
#include "ours.h"

#include <unistd.h>

uint32_t ours_hold_timeout_ms = 60000;
IUnknown *ours_info;

static HRESULT module_unload_started(ICorProfilerCallback11 *self, ModuleID module) {
  (void)self;
  clrsnap_module_unload_started(module);
  return S_OK;
}

static HRESULT dynamic_method_unloaded(ICorProfilerCallback11 *self, FunctionID function) {
  (void)self;
  clrsnap_dynamic_method_unloaded(function);
  return S_OK;
}

static HRESULT thread_created(ICorProfilerCallback11 *self, ThreadID thread) {
  (void)self;
  clrsnap_thread_created(thread);
  return S_OK;
}

void ours_start(ICorProfilerCallback11Vtbl *vtbl, uint32_t flags) {
  struct clrsnap_opts opts = {.size = sizeof(opts), .flags = flags};
  // For a loaded machine, a sanitizer, or a debugger: no test here is about how fast a response is.
  opts.answer_timeout_ms = 30000;
  opts.hold_timeout_ms = ours_hold_timeout_ms;
  HRESULT hr = clrsnap_start(ours_info != NULL ? ours_info : (IUnknown *)oracle_info, &opts);
  ORACLE_CHECK(hr == S_OK, "clrsnap_start: %#x %s", (unsigned)hr, clrsnap_last_error());
  vtbl->ThreadCreated = thread_created;
  vtbl->ModuleUnloadStarted = module_unload_started;
  vtbl->DynamicMethodUnloaded = dynamic_method_unloaded;
  oracle_on_thread_assigned = clrsnap_thread_assigned;
  oracle_on_thread_destroyed = clrsnap_thread_destroyed;
}

DWORD ours_mask(DWORD *high) {
  *high |= COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS;
  return COR_PRF_MONITOR_THREADS | COR_PRF_MONITOR_MODULE_LOADS | COR_PRF_ENABLE_STACK_SNAPSHOT;
}

bool ours_ready(void) {
  HRESULT hr = S_OK;
  for (int i = 0; i < 3000; i++) {  // 30 s: the runtime may have run too little code so far
    hr = clrsnap_ready();
    if (hr != CORPROF_E_STACKSNAPSHOT_UNSAFE) break;
    usleep(10000);
  }
  ORACLE_CHECK(hr == S_OK, "clrsnap_ready: %#x %s", (unsigned)hr, clrsnap_last_error());
  return hr == S_OK;
}

void stack_by_ours(struct stack *stack, ThreadID thread, ULONG32 flags) {
  stack_clear(stack);
  stack->hr = clrsnap_snapshot(thread, stack_collect, flags, stack, NULL, 0);
}
