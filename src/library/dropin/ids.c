// SPDX-License-Identifier: MIT
// The guest's calls that name a thread, with CLRSNAP_ELIDE_SUSPEND=1. Nothing is stopped between
// its SuspendRuntime and ResumeRuntime, so a ThreadID that it has from EnumThreads may die there,
// where the runtime itself would have kept it.
//
// Invariant: the runtime is handed no ThreadID that may be freed during the call: a thread that is
// known is kept until the call is over (its ThreadDestroyed waits for that, and for nothing else of
// the round), and one that has ended is E_INVALIDARG. Any thread; not for handlers.
#include "dropin/guest.h"
#include "threads/registry.h"

struct named {
  struct cs_thread *kept;  // NULL: nothing to give back
  bool alive;              // as far as the guest may know
};

static struct named name(ICorProfilerInfo15 *self, ThreadID id) {
  const struct cs_guest *guest = cs_wrapped_of(self)->guest;
  struct cs_thread *thread = cs_elides(guest) ? cs_registry_find(id) : NULL;
  if (thread != NULL && cs_thread_keep(thread, id)) return (struct named){thread, true};
  if (!cs_elides(guest) || id == 0) return (struct named){NULL, true};
  // Not known: the runtime may not have told of it yet; or the guest has it from the time of its
  // SuspendRuntime, since when too many have ended for all to be remembered.
  bool forgotten = cs_registry_deaths() - cs_load_acquire(&guest->deaths) >= CS_REGISTRY_REMEMBERED;
  return (struct named){NULL, thread == NULL && !forgotten && !cs_registry_was_destroyed(id)};
}

static HRESULT end(struct named named, HRESULT hr) {
  if (named.kept != NULL) cs_thread_unpin(named.kept);
  return hr;
}

#define ASK(method, id, ...)                                                                     \
  do {                                                                                           \
    ICorProfilerInfo15 *theirs = THEIRS(self, ICorProfilerInfo15, method);                       \
    struct named named = name(self, id);                                                         \
    return named.alive ? end(named, theirs->lpVtbl->method(theirs, __VA_ARGS__)) : E_INVALIDARG; \
  } while (0)

static HRESULT get_handle(ICorProfilerInfo15 *self, ThreadID id, HANDLE *handle) {
  ASK(GetHandleFromThread, id, id, handle);
}

static HRESULT get_info(ICorProfilerInfo15 *self, ThreadID id, DWORD *tid) {
  ASK(GetThreadInfo, id, id, tid);
}

static HRESULT get_context(ICorProfilerInfo15 *self, ThreadID id, ContextID *context) {
  ASK(GetThreadContext, id, id, context);
}

static HRESULT get_app_domain(ICorProfilerInfo15 *self, ThreadID id, AppDomainID *domain) {
  ASK(GetThreadAppDomain, id, id, domain);
}

static HRESULT get_static(ICorProfilerInfo15 *self, ClassID type, mdFieldDef field, ThreadID id,
                          void **at) {
  ASK(GetThreadStaticAddress, id, type, field, id, at);
}

static HRESULT get_static2(ICorProfilerInfo15 *self, ClassID type, mdFieldDef field,
                           AppDomainID domain, ThreadID id, void **at) {
  ASK(GetThreadStaticAddress2, id, type, field, domain, id, at);
}

void cs_ids_take_over(ICorProfilerInfo15Vtbl *vtbl) {
  vtbl->GetHandleFromThread = get_handle;
  vtbl->GetThreadInfo = get_info;
  vtbl->GetThreadContext = get_context;
  vtbl->GetThreadAppDomain = get_app_domain;
  vtbl->GetThreadStaticAddress = get_static;
  vtbl->GetThreadStaticAddress2 = get_static2;
}
