// SPDX-License-Identifier: MIT
// The guest's calls that name a thread, with CLRSNAP_ELIDE_SUSPEND=1. Threads run on between its
// SuspendRuntime and ResumeRuntime, so a thread that EnumThreads has returned may end in between,
// which a real stop would have prevented.
//
// Invariant: the runtime gets no ThreadID that may be freed during the call. A known thread is kept
// until the call has returned (its ThreadDestroyed waits for that call, not for the whole round);
// for one that has ended the call returns E_INVALIDARG. Any thread; not for handlers.
#include "dropin/guest.h"
#include "threads/registry.h"

struct named {
  struct cs_thread *kept;  // to be unpinned after the call; or NULL
  bool alive;              // not known to have ended
};

static struct named name(ICorProfilerInfo15 *self, ThreadID id) {
  const struct cs_guest *guest = cs_wrapped_of(self)->guest;
  struct cs_thread *thread = cs_elides(guest) ? cs_registry_find(id) : NULL;
  if (thread != NULL && cs_thread_keep(thread, id)) return (struct named){thread, true};
  if (!cs_elides(guest) || id == 0) return (struct named){NULL, true};
  // Unknown: its ThreadCreated may not have come yet; or it has ended since the guest's
  // SuspendRuntime, as have more threads than are remembered.
  bool forgotten = cs_registry_deaths() - cs_load_acquire(&guest->deaths) >= CS_REGISTRY_REMEMBERED;
  return (struct named){NULL, thread == NULL && !forgotten && !cs_registry_was_destroyed(id)};
}

static HRESULT end(struct named named, HRESULT hr) {
  if (named.kept != NULL) cs_thread_unpin(named.kept);
  return hr;
}

#define FORWARD(method, id, ...)                                                                 \
  do {                                                                                           \
    ICorProfilerInfo15 *theirs = THEIRS(self, ICorProfilerInfo15, method);                       \
    struct named named = name(self, id);                                                         \
    return named.alive ? end(named, theirs->lpVtbl->method(theirs, __VA_ARGS__)) : E_INVALIDARG; \
  } while (0)

static HRESULT get_handle(ICorProfilerInfo15 *self, ThreadID id, HANDLE *handle) {
  FORWARD(GetHandleFromThread, id, id, handle);
}

static HRESULT get_info(ICorProfilerInfo15 *self, ThreadID id, DWORD *tid) {
  FORWARD(GetThreadInfo, id, id, tid);
}

static HRESULT get_context(ICorProfilerInfo15 *self, ThreadID id, ContextID *context) {
  FORWARD(GetThreadContext, id, id, context);
}

static HRESULT get_app_domain(ICorProfilerInfo15 *self, ThreadID id, AppDomainID *domain) {
  FORWARD(GetThreadAppDomain, id, id, domain);
}

static HRESULT get_static(ICorProfilerInfo15 *self, ClassID type, mdFieldDef field, ThreadID id,
                          void **at) {
  FORWARD(GetThreadStaticAddress, id, type, field, id, at);
}

static HRESULT get_static2(ICorProfilerInfo15 *self, ClassID type, mdFieldDef field,
                           AppDomainID domain, ThreadID id, void **at) {
  FORWARD(GetThreadStaticAddress2, id, type, field, domain, id, at);
}

void cs_ids_take_over(ICorProfilerInfo15Vtbl *vtbl) {
  vtbl->GetHandleFromThread = get_handle;
  vtbl->GetThreadInfo = get_info;
  vtbl->GetThreadContext = get_context;
  vtbl->GetThreadAppDomain = get_app_domain;
  vtbl->GetThreadStaticAddress = get_static;
  vtbl->GetThreadStaticAddress2 = get_static2;
}
