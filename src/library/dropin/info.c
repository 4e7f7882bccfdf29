// SPDX-License-Identifier: MIT
// The ICorProfilerInfo that a guest gets: the runtime's own in every slot, but for DoStackSnapshot,
// which works, and the few beside it (mask.c, elide.c).
//
// Invariant: QueryInterface answers for the same interfaces as the runtime's, and always with this
// one object. Threads: the guest's, several at a time. DoStackSnapshot of the calling thread is
// async-signal-safe once the library is ready, as clrsnap_snapshot is.
#include "base/base.h"
#include "clr/clr.h"
#include "dropin/guest.h"
#include "snapshot/take.h"

static ICorProfilerInfo15 *theirs_of(ICorProfilerInfo15 *self) {
  return THEIRS(self, ICorProfilerInfo15, DoStackSnapshot);
}

static uint32_t flags_of(const struct cs_guest *guest) {
  return (guest->options.hold ? CLRSNAP_HOLD_TARGET : 0u) |
         (guest->options.dynamic ? CLRSNAP_REPORT_DYNAMIC : 0u);
}

// Before the runtime has run code to check its layout against, a managed thread, which may be in a
// handler of its own, is not made to check: the runtime's own walk serves it, or refuses.
static bool is_ready(struct cs_guest *guest) {
  return cs_load_acquire(&guest->ready) || (!cs_caller_is_managed() && cs_guest_ready(guest));
}

static HRESULT do_stack_snapshot(ICorProfilerInfo15 *self, ThreadID thread,
                                 StackSnapshotCallback *callback, ULONG32 info_flags, void *data,
                                 BYTE context[], ULONG32 context_size) {
  struct cs_guest *guest = cs_wrapped_of(self)->guest;
  ICorProfilerInfo15 *theirs = theirs_of(self);
  bool ours = cs_load_acquire(&guest->walks);
  // The runtime's mask has this flag because of us.
  if (ours && !(cs_load_relaxed(&guest->low) & COR_PRF_ENABLE_STACK_SNAPSHOT))
    return cs_runtime_has_started(theirs) ? CORPROF_E_INCONSISTENT_WITH_FLAGS
                                          : CORPROF_E_STACKSNAPSHOT_UNSAFE;
  if (ours && is_ready(guest))
    return cs_snapshot(flags_of(guest), thread, callback, info_flags, data, context, context_size);
  return theirs->lpVtbl->DoStackSnapshot(theirs, thread, callback, info_flags, data, context,
                                         context_size);
}

// From now on no callback tells of threads that end, so nothing of ours may be walked.
static HRESULT request_detach(ICorProfilerInfo15 *self, DWORD ms) {
  ICorProfilerInfo15 *theirs = THEIRS(self, ICorProfilerInfo15, RequestProfilerDetach);
  struct cs_guest *guest = cs_wrapped_of(self)->guest;
  HRESULT hr = theirs->lpVtbl->RequestProfilerDetach(theirs, ms);
  if (SUCCEEDED(hr)) cs_store_release(&guest->walks, false);
  return hr;
}

// The runtime asks its callback object, which is ours; an older guest behind it has no such method.
static HRESULT request_rejit(ICorProfilerInfo15 *self, ULONG count, ModuleID modules[],
                             mdMethodDef methods[]) {
  ICorProfilerInfo15 *theirs = THEIRS(self, ICorProfilerInfo15, RequestReJIT);
  const struct cs_guest *guest = cs_wrapped_of(self)->guest;
  if (guest->proxy != NULL && guest->version < 4) return CORPROF_E_CALLBACK4_REQUIRED;
  return theirs->lpVtbl->RequestReJIT(theirs, count, modules, methods);
}

// All of the runtime's interfaces are one object; the family tells others by their address.
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
}

void *cs_wrap_info(struct cs_guest *guest, IUnknown *info) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, init);
  return cs_wrap(&infos, guest, info, true);
}
