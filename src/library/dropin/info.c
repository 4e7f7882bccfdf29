// SPDX-License-Identifier: MIT
// The ICorProfilerInfo that a guest gets: every slot forwards to the runtime's, except
// DoStackSnapshot, which is clrsnap's, and those in mask.c, elide.c and ids.c.
//
// Invariant: QueryInterface succeeds for the interfaces that the runtime's has, and always returns
// this one object. Threads: the guest's, several at a time. DoStackSnapshot of the calling thread,
// or with an unknown ThreadID, is async-signal-safe at any time: before the library is ready
// (life.c), and after a detach, it returns an HRESULT and calls nothing.

#include "base/base.h"
#include "clr/clr.h"
#include "dropin/guest.h"
#include "life/altstacks_soon.h"
#include "threads/registry.h"

static ICorProfilerInfo15 *theirs_of(ICorProfilerInfo15 *self) {
  return THEIRS(self, ICorProfilerInfo15, DoStackSnapshot);
}

static uint32_t flags_of(const struct cs_guest *guest) {
  return (guest->options.hold ? CLRSNAP_HOLD_TARGET : 0u) |
         (guest->options.dynamic ? CLRSNAP_REPORT_DYNAMIC : 0u) |
         (cs_load_acquire(&guest->suspended) != 0 ? CS_SNAPSHOT_ROUND : 0u);
}

// ---- A guest that has stopped the runtime ----

struct counted {
  StackSnapshotCallback *callback;
  void *data;
  bool called;
};

static HRESULT count(FunctionID function, UINT_PTR ip, COR_PRF_FRAME_INFO info, ULONG32 size,
                     BYTE context[], void *data) {
  struct counted *counted = data;
  counted->called = true;
  return counted->callback(function, ip, info, size, context, counted->data);
}

// The runtime's own walk is meant for a caller that has stopped the runtime, and then costs less
// than clrsnap's. It cannot report methods without metadata, cannot hold its target, and does not
// check the ThreadID.
static bool is_for_the_runtime(const struct cs_guest *guest, ThreadID thread,
                               const BYTE context[]) {
  return context == NULL && !guest->options.hold && !guest->options.dynamic &&
         cs_runtime_is_stopped_by_caller() && cs_registry_find(thread) != NULL;
}

// Returns false if CoreCLR refuses. E_FAIL, for a thread without managed frames, is not a refusal.
static bool walk_stopped(ICorProfilerInfo15 *theirs, ThreadID thread,
                         StackSnapshotCallback *callback, ULONG32 info_flags, void *data,
                         HRESULT *hr) {
  struct counted counted = {callback, data, false};
  *hr = theirs->lpVtbl->DoStackSnapshot(theirs, thread, callback != NULL ? count : NULL, info_flags,
                                        &counted, NULL, 0);
  return *hr == S_OK || *hr == E_FAIL || counted.called;
}

static HRESULT do_stack_snapshot(ICorProfilerInfo15 *self, ThreadID thread,
                                 StackSnapshotCallback *callback, ULONG32 info_flags, void *data,
                                 BYTE context[], ULONG32 context_size) {
  struct cs_guest *guest = cs_wrapped_of(self)->guest;
  ICorProfilerInfo15 *theirs = theirs_of(self);
  bool walks = cs_load_acquire(&guest->walks);
  if (!walks && cs_load_acquire(&guest->detaching)) return CORPROF_E_PROFILER_DETACHING;
  HRESULT state = walks ? cs_library_state() : CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER;
  if (state == CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER)
    return theirs->lpVtbl->DoStackSnapshot(theirs, thread, callback, info_flags, data, context,
                                           context_size);
  if (state != S_OK) return state;
  // The runtime's mask has this flag only because clrsnap has set it.
  if (!(cs_load_relaxed(&guest->low_mask) & COR_PRF_ENABLE_STACK_SNAPSHOT))
    return CORPROF_E_INCONSISTENT_WITH_FLAGS;
  HRESULT hr;
  if (is_for_the_runtime(guest, thread, context) &&
      walk_stopped(theirs, thread, callback, info_flags, data, &hr))
    return hr;
  return cs_snapshot(flags_of(guest) | CS_SNAPSHOT_QUIET, thread, callback, info_flags, data,
                     context, context_size);
}

// After this, there is no callback when a thread ends, so no thread may be walked.
static HRESULT request_detach(ICorProfilerInfo15 *self, DWORD ms) {
  ICorProfilerInfo15 *theirs = THEIRS(self, ICorProfilerInfo15, RequestProfilerDetach);
  struct cs_guest *guest = cs_wrapped_of(self)->guest;
  HRESULT hr = theirs->lpVtbl->RequestProfilerDetach(theirs, ms);
  if (FAILED(hr)) return hr;
  cs_store_release(&guest->detaching, true);
  cs_store_release(&guest->walks, false);
  return hr;
}

// The runtime checks the version of its callback object, which is the wrapper; the guest may be
// older.
static HRESULT request_rejit(ICorProfilerInfo15 *self, ULONG count, ModuleID modules[],
                             mdMethodDef methods[]) {
  ICorProfilerInfo15 *theirs = THEIRS(self, ICorProfilerInfo15, RequestReJIT);
  const struct cs_guest *guest = cs_wrapped_of(self)->guest;
  if (guest->proxy != NULL && guest->version < 4) return CORPROF_E_CALLBACK4_REQUIRED;
  return theirs->lpVtbl->RequestReJIT(theirs, count, modules, methods);
}

// All versions of ICorProfilerInfo are one object in the runtime, so its address identifies the
// rest.
static bool is_info(REFIID iid) {
  return cs_guid_equal(iid, &IID_ICorProfilerInfo);
}

static struct cs_family infos = {.is_of_kind = is_info};

static void init(void) {
  cs_family_init(&infos);
  ICorProfilerInfo15Vtbl *vtbl = (ICorProfilerInfo15Vtbl *)(void *)infos.vtbl;
  vtbl->DoStackSnapshot = do_stack_snapshot;
  vtbl->RequestProfilerDetach = request_detach;
  vtbl->RequestReJIT = request_rejit;
  cs_mask_take_over(vtbl);
  cs_elide_take_over(vtbl);
  cs_ids_take_over(vtbl);
}

void *cs_wrap_info(struct cs_guest *guest, IUnknown *info) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, init);
  return cs_wrap(&infos, guest, info, true);
}
