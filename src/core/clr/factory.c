// SPDX-License-Identifier: MIT
// How the runtime creates its profiler: dlopen, DllGetClassObject, IClassFactory::CreateInstance.
// Invariant: the factory is static and never freed; every failure is an HRESULT, and a failed load
// leaves the application running. Threads: the main thread at start, the diagnostics server's on
// attach. Signal-safe: no.
//
// DllMain is deliberately not exported: the runtime would call it when any thread starts or ends.
#include "clr/clr.h"

static HRESULT query_interface(IClassFactory *self, REFIID iid, void **out) {
  if (out == NULL) return E_POINTER;
  *out = NULL;
  if (iid == NULL) return E_INVALIDARG;
  if (!cs_guid_equal(iid, &IID_IUnknown) && !cs_guid_equal(iid, &IID_IClassFactory)) {
    return E_NOINTERFACE;
  }
  *out = self;
  return S_OK;
}

// The library is never unloaded (-z nodelete), so neither is the factory.
static ULONG keep(IClassFactory *self) {
  (void)self;
  return 1;
}

static HRESULT create_instance(IClassFactory *self, IUnknown *outer, REFIID iid, void **out) {
  (void)self;
  if (out == NULL) return E_POINTER;
  *out = NULL;
  if (outer != NULL) return CLASS_E_NOAGGREGATION;
  if (iid == NULL) return E_INVALIDARG;
  return cs_profiler_create(iid, out);
}

static HRESULT lock_server(IClassFactory *self, BOOL lock) {
  (void)self, (void)lock;
  return S_OK;
}

HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid, void **out);

__attribute__((visibility("default"))) HRESULT DllGetClassObject(REFCLSID clsid, REFIID iid,
                                                                 void **out) {
  static const IClassFactoryVtbl vtbl = {query_interface, keep, keep, create_instance, lock_server};
  static IClassFactory factory = {&vtbl};
  if (out == NULL) return E_POINTER;
  *out = NULL;
  if (clsid == NULL || iid == NULL) return E_INVALIDARG;
  if (!cs_guid_equal(clsid, &cs_clsid_clrsnap)) return cs_foreign_class_object(clsid, iid, out);
  return query_interface(&factory, iid, out);
}
