// SPDX-License-Identifier: MIT
// The guest's callback object, wrapped: the library learns first which threads and which code come
// and go, and the guest gets only the callbacks that it has asked for.
//
// Invariants: QueryInterface returns what the guest's returns; the library forgets a thread after
// the guest's ThreadDestroyed, in which the guest may still walk it; a callback that ends an ID of
// code waits until an elided suspension is over. Threads: those on which the runtime calls. Not for
// handlers.
#include "base/log.h"
#include "clr/clr.h"
#include "dropin/guest.h"

#define CALLBACK(self, method) THEIRS(self, ICorProfilerCallback11, method)

static struct cs_guest *guest_of(ICorProfilerCallback11 *self) {
  return cs_wrapped_of(self)->guest;
}

static bool wants(ICorProfilerCallback11 *self, DWORD low) {
  return (cs_load_relaxed(&guest_of(self)->low_mask) & low) != 0;
}

// ---- Life ----

static HRESULT initialize(ICorProfilerCallback11 *self, IUnknown *info) {
  struct cs_guest *guest = guest_of(self);
  struct cs_error err = {""};
  if (guest->proxy != NULL) {
    cs_log_important(
        CS_PROFILER_PATH
        " is not set: the class in CORECLR_PROFILER or DOTNET_PROFILER is not clrsnap's, "
        "so it must name the library of the profiler that is");
    return CLASS_E_CLASSNOTAVAILABLE;
  }
  ICorProfilerCallback11 *theirs = CALLBACK(self, Initialize);
  cs_guest_begin(guest, info);
  HRESULT hr = theirs->lpVtbl->Initialize(theirs, cs_wrap_info(guest, info));
  if (FAILED(hr)) {
    cs_log("the profiler refuses to be initialized (0x%08x)", (unsigned)hr);
    cs_guest_end(guest);
  } else if (!cs_mask_settle(guest, &err)) {
    cs_log_important("%s; the profiler runs on with the runtime's own DoStackSnapshot", err.text);
    cs_guest_end(guest);
  }
  return hr;
}

static HRESULT initialize_for_attach(ICorProfilerCallback11 *self, IUnknown *info, void *data,
                                     UINT size) {
  struct cs_guest *guest = guest_of(self);
  struct cs_error err = {""};
  size_t used = 0;
  if (guest->proxy != NULL) {
    HRESULT loaded = cs_attach_load(cs_wrapped_of(self), data, size, &used);
    if (FAILED(loaded)) return loaded;
  }
  ICorProfilerCallback11 *theirs = CALLBACK(self, InitializeForAttach);
  cs_guest_begin(guest, info);
  void *rest = size > used ? (char *)data + used : NULL;
  HRESULT hr = theirs->lpVtbl->InitializeForAttach(theirs, cs_wrap_info(guest, info), rest,
                                                   size - (UINT)used);
  if (FAILED(hr)) {
    cs_log("the profiler refuses to be attached (0x%08x)", (unsigned)hr);
    cs_guest_end(guest);
  } else if (!cs_mask_settle(guest, &err)) {
    cs_log_important("%s; the profiler runs on with the runtime's own DoStackSnapshot", err.text);
    cs_guest_end(guest);
  } else {
    cs_guest_attaches(guest);
  }
  return hr;
}

static HRESULT attach_complete(ICorProfilerCallback11 *self) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, ProfilerAttachComplete);
  cs_guest_attached(guest_of(self));
  return theirs->lpVtbl->ProfilerAttachComplete(theirs);
}

static HRESULT detach_succeeded(ICorProfilerCallback11 *self) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, ProfilerDetachSucceeded);
  HRESULT hr = theirs->lpVtbl->ProfilerDetachSucceeded(theirs);
  cs_guest_end(guest_of(self));
  cs_store_release(&guest_of(self)->detached, true);
  return hr;
}

// ---- Threads ----

static HRESULT thread_created(ICorProfilerCallback11 *self, ThreadID id) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, ThreadCreated);
  clrsnap_thread_created(id);
  return wants(self, COR_PRF_MONITOR_THREADS) ? theirs->lpVtbl->ThreadCreated(theirs, id) : S_OK;
}

static HRESULT thread_assigned(ICorProfilerCallback11 *self, ThreadID id, DWORD tid) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, ThreadAssignedToOSThread);
  clrsnap_thread_assigned(id, tid);
  cs_guest_verify_layout(guest_of(self), false);
  return wants(self, COR_PRF_MONITOR_THREADS)
             ? theirs->lpVtbl->ThreadAssignedToOSThread(theirs, id, tid)
             : S_OK;
}

static HRESULT thread_destroyed(ICorProfilerCallback11 *self, ThreadID id) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, ThreadDestroyed);
  HRESULT hr = S_OK;
  if (wants(self, COR_PRF_MONITOR_THREADS)) hr = theirs->lpVtbl->ThreadDestroyed(theirs, id);
  clrsnap_thread_destroyed(id);
  return hr;
}

static HRESULT thread_renamed(ICorProfilerCallback11 *self, ThreadID id, ULONG units,
                              WCHAR name[]) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, ThreadNameChanged);
  return wants(self, COR_PRF_MONITOR_THREADS)
             ? theirs->lpVtbl->ThreadNameChanged(theirs, id, units, name)
             : S_OK;
}

// ---- Code that comes and goes ----

static HRESULT module_load_started(ICorProfilerCallback11 *self, ModuleID id) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, ModuleLoadStarted);
  return wants(self, COR_PRF_MONITOR_MODULE_LOADS) ? theirs->lpVtbl->ModuleLoadStarted(theirs, id)
                                                   : S_OK;
}

// Code of a new module may give the library what it needs to verify the runtime's layout. The first
// module is CoreLib, and no managed code runs before this callback returns.
static HRESULT module_load_finished(ICorProfilerCallback11 *self, ModuleID id, HRESULT status) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, ModuleLoadFinished);
  HRESULT hr = S_OK;
  if (wants(self, COR_PRF_MONITOR_MODULE_LOADS))
    hr = theirs->lpVtbl->ModuleLoadFinished(theirs, id, status);
  cs_guest_verify_layout(guest_of(self), true);
  return hr;
}

static HRESULT module_attached(ICorProfilerCallback11 *self, ModuleID id, AssemblyID assembly) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, ModuleAttachedToAssembly);
  return wants(self, COR_PRF_MONITOR_MODULE_LOADS)
             ? theirs->lpVtbl->ModuleAttachedToAssembly(theirs, id, assembly)
             : S_OK;
}

static HRESULT module_unload_started(ICorProfilerCallback11 *self, ModuleID id) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, ModuleUnloadStarted);
  HRESULT hr = S_OK;
  cs_elide_wait(guest_of(self));
  if (wants(self, COR_PRF_MONITOR_MODULE_LOADS))
    hr = theirs->lpVtbl->ModuleUnloadStarted(theirs, id);
  clrsnap_module_unload_started(id);
  return hr;
}

static HRESULT module_unload_finished(ICorProfilerCallback11 *self, ModuleID id, HRESULT status) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, ModuleUnloadFinished);
  return wants(self, COR_PRF_MONITOR_MODULE_LOADS)
             ? theirs->lpVtbl->ModuleUnloadFinished(theirs, id, status)
             : S_OK;
}

static HRESULT dynamic_method_unloaded(ICorProfilerCallback11 *self, FunctionID id) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, DynamicMethodUnloaded);
  bool wanted = (cs_load_relaxed(&guest_of(self)->high_mask) &
                 COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS) != 0;
  cs_elide_wait(guest_of(self));
  HRESULT hr = wanted ? theirs->lpVtbl->DynamicMethodUnloaded(theirs, id) : S_OK;
  clrsnap_dynamic_method_unloaded(id);
  return hr;
}

// These callbacks end other IDs, and come only if the guest has asked for them.
static HRESULT class_unload_started(ICorProfilerCallback11 *self, ClassID id) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, ClassUnloadStarted);
  cs_elide_wait(guest_of(self));
  return theirs->lpVtbl->ClassUnloadStarted(theirs, id);
}

static HRESULT assembly_unload_started(ICorProfilerCallback11 *self, AssemblyID id) {
  ICorProfilerCallback11 *theirs = CALLBACK(self, AssemblyUnloadStarted);
  cs_elide_wait(guest_of(self));
  return theirs->lpVtbl->AssemblyUnloadStarted(theirs, id);
}

// ---- The wrapper ----

static bool is_callback(REFIID iid) {
  return cs_callback_version(iid) > 0;
}

// The runtime releases its last reference after ProfilerDetachSucceeded, and would then close the
// guest's library.
static void referenced(struct cs_guest *guest, int change) {
  int left = __atomic_add_fetch(&guest->references, change, __ATOMIC_SEQ_CST);
  if (left == 0 && cs_load_acquire(&guest->detached)) cs_guest_unload(guest);
}

static struct cs_family callbacks = {.is_of_kind = is_callback, .referenced = referenced};

static void init(void) {
  cs_family_init(&callbacks);
  ICorProfilerCallback11Vtbl *vtbl = (ICorProfilerCallback11Vtbl *)(void *)callbacks.vtbl;
  vtbl->Initialize = initialize;
  vtbl->InitializeForAttach = initialize_for_attach;
  vtbl->ProfilerAttachComplete = attach_complete;
  vtbl->ProfilerDetachSucceeded = detach_succeeded;
  vtbl->ThreadCreated = thread_created;
  vtbl->ThreadAssignedToOSThread = thread_assigned;
  vtbl->ThreadDestroyed = thread_destroyed;
  vtbl->ThreadNameChanged = thread_renamed;
  vtbl->ModuleLoadStarted = module_load_started;
  vtbl->ModuleLoadFinished = module_load_finished;
  vtbl->ModuleAttachedToAssembly = module_attached;
  vtbl->ModuleUnloadStarted = module_unload_started;
  vtbl->ModuleUnloadFinished = module_unload_finished;
  vtbl->DynamicMethodUnloaded = dynamic_method_unloaded;
  vtbl->ClassUnloadStarted = class_unload_started;
  vtbl->AssemblyUnloadStarted = assembly_unload_started;
  cs_attach_take_over(vtbl);
}

static uint32_t newest_version(IUnknown *callback) {
  for (int version = CS_NEWEST_CALLBACK; version > 0; version--) {
    IUnknown *part;
    if (FAILED(
            callback->lpVtbl->QueryInterface(callback, cs_callback_iid(version), (void **)&part)))
      continue;
    (void)part->lpVtbl->Release(part);
    return (uint32_t)version;
  }
  return 0;
}

void *cs_wrap_callback(struct cs_guest *guest, IUnknown *callback) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, init);
  guest->references = 1;
  if (guest->proxy == NULL) guest->version = newest_version(callback);
  return cs_wrap(&callbacks, guest, callback, true);
}
