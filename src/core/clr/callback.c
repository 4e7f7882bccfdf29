// SPDX-License-Identifier: MIT
// The default callback object: every slot is filled, so the runtime may call any of them.
// Invariant: QueryInterface accepts an interface only together with all lower versions of it, since
// one table of 98 slots serves all. References are counted atomically, because the runtime releases
// them on any thread. Threads: any that the runtime calls on. Signal-safe: no.
#include <string.h>

#include "base/base.h"
#include "clr/clr.h"

static struct cs_callback *callback_of(ICorProfilerCallback11 *self) {
  return (struct cs_callback *)self;  // its first member
}

static const GUID *const iids[CS_NEWEST_CALLBACK + 1] = {
    &IID_IUnknown,
    &IID_ICorProfilerCallback,
    &IID_ICorProfilerCallback2,
    &IID_ICorProfilerCallback3,
    &IID_ICorProfilerCallback4,
    &IID_ICorProfilerCallback5,
    &IID_ICorProfilerCallback6,
    &IID_ICorProfilerCallback7,
    &IID_ICorProfilerCallback8,
    &IID_ICorProfilerCallback9,
    &IID_ICorProfilerCallback10,
    &IID_ICorProfilerCallback11,
};

const GUID *cs_callback_iid(int version) {
  return iids[version];
}

int cs_callback_version(REFIID iid) {
  for (int i = 0; i < (int)CS_COUNT(iids); i++)
    if (cs_guid_equal(iid, iids[i])) return i;
  return -1;
}

static HRESULT query_interface(ICorProfilerCallback11 *self, REFIID iid, void **out) {
  if (out == NULL) return E_POINTER;
  *out = NULL;
  if (iid == NULL) return E_INVALIDARG;
  if (cs_callback_version(iid) < 0) return E_NOINTERFACE;
  (void)self->lpVtbl->AddRef(self);
  *out = self;
  return S_OK;
}

static ULONG add_ref(ICorProfilerCallback11 *self) {
  return cs_add_seq(&callback_of(self)->refs, 1) + 1;
}

static ULONG release(ICorProfilerCallback11 *self) {
  struct cs_callback *callback = callback_of(self);
  ULONG left = cs_add_seq(&callback->refs, UINT32_MAX) - 1;
  if (left == 0 && callback->destroy != NULL) callback->destroy(callback);
  return left;
}

// Serves every slot whose arguments do not matter: in the System V ABI arguments belong to the
// caller, so a function without parameters may be called with any.
static HRESULT return_ok(void) {
  return S_OK;
}

static HRESULT jit_inlining(ICorProfilerCallback11 *self, FunctionID caller, FunctionID callee,
                            BOOL *should_inline) {
  (void)self, (void)caller, (void)callee;
  *should_inline = 1;
  return S_OK;
}

static HRESULT cached_function_search_started(ICorProfilerCallback11 *self, FunctionID function,
                                              BOOL *use_cached) {
  (void)self, (void)function;
  *use_cached = 1;
  return S_OK;
}

static HRESULT load_as_notification_only(ICorProfilerCallback11 *self, BOOL *notification_only) {
  (void)self;
  *notification_only = 1;
  return S_OK;
}

void cs_callback_defaults(struct ICorProfilerCallback11Vtbl *vtbl) {
  HRESULT (*ok)(void) = return_ok;
  _Static_assert(sizeof ok == 8, "a slot is one word");
  for (size_t at = 0; at < sizeof *vtbl; at += sizeof ok) {
    memcpy((char *)vtbl + at, &ok, sizeof ok);
  }
  vtbl->QueryInterface = query_interface;
  vtbl->AddRef = add_ref;
  vtbl->Release = release;
  vtbl->JITInlining = jit_inlining;
  vtbl->JITCachedFunctionSearchStarted = cached_function_search_started;
  vtbl->LoadAsNotificationOnly = load_as_notification_only;
}
