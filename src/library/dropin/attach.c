// SPDX-License-Identifier: MIT
// An attach: the runtime first asks for the profiler object, and only later, in
// InitializeForAttach, hands over the client data that names the guest's library. Until then the
// wrapper forwards to a proxy, which implements every ICorProfilerCallback because the runtime asks
// for the newest. Once the guest is loaded, each slot forwards to it, except for slots that are
// newer than the guest: those stay with the proxy.
//
// Invariants: the guest's reference count is the number of references that the runtime has taken; a
// callback whose form is too new for the guest reaches it in the older form. Threads: the
// diagnostics server's; any for the callbacks at the end of the file. Not for handlers.
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "clr/clr.h"
#include "dropin/guest.h"

enum { NEWEST = CS_NEWEST_CALLBACK, CREATED = 2 };  // the runtime creates ICorProfilerCallback2

// ---- The proxy ----

// It is not known yet whether the guest is a notification-only profiler. Most are not.
static HRESULT load_as_notification_only(ICorProfilerCallback11 *self, BOOL *notification_only) {
  (void)self;
  *notification_only = 0;
  return S_OK;
}

static ICorProfilerCallback11Vtbl proxy_vtbl;

static void init_proxy(void) {
  cs_callback_defaults(&proxy_vtbl);
  proxy_vtbl.LoadAsNotificationOnly = load_as_notification_only;
}

struct deferred_factory {
  IClassFactory base;
  CLSID clsid;
};

static HRESULT factory_query(IClassFactory *self, REFIID iid, void **out) {
  *out = NULL;
  if (!cs_guid_equal(iid, &IID_IUnknown) && !cs_guid_equal(iid, &IID_IClassFactory))
    return E_NOINTERFACE;
  *out = self;
  return S_OK;
}

static ULONG factory_count(IClassFactory *self) {
  (void)self;
  return 1;  // one per process and class, never freed
}

static HRESULT factory_create(IClassFactory *self, IUnknown *outer, REFIID iid, void **out) {
  const struct deferred_factory *factory = (const struct deferred_factory *)(const void *)self;
  if (outer != NULL) return CLASS_E_NOAGGREGATION;
  if (cs_callback_version(iid) < 0) return E_NOINTERFACE;
  struct cs_guest *guest = calloc(1, sizeof *guest);
  struct cs_callback *proxy = calloc(1, sizeof *proxy);
  if (guest == NULL || proxy == NULL) {
    free(guest);
    free(proxy);
    return E_OUTOFMEMORY;
  }
  *proxy = (struct cs_callback){{&proxy_vtbl}, 1, NULL};
  guest->clsid = factory->clsid;
  guest->proxy = proxy;
  *out = cs_wrap_callback(guest, (IUnknown *)(void *)&proxy->base);
  return *out != NULL ? S_OK : E_OUTOFMEMORY;
}

static HRESULT factory_lock(IClassFactory *self, BOOL lock) {
  (void)self, (void)lock;
  return S_OK;
}

HRESULT cs_attach_class_object(REFCLSID clsid, REFIID iid, void **out) {
  static const IClassFactoryVtbl vtbl = {factory_query, factory_count, factory_count,
                                         factory_create, factory_lock};
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, init_proxy);
  struct deferred_factory *factory = malloc(sizeof *factory);
  if (factory == NULL) return E_OUTOFMEMORY;
  *factory = (struct deferred_factory){{&vtbl}, *clsid};
  HRESULT hr = factory_query(&factory->base, iid, out);
  if (FAILED(hr)) free(factory);
  return hr;
}

// ---- The guest takes the proxy's place ----

// Returns the first slot of each version. The entry after the newest version is the number of
// slots.
static size_t first_slot(int version) {
  static const size_t first[NEWEST + 2] = {
      0,
      CS_SLOT(ICorProfilerCallback11, Initialize),
      CS_SLOT(ICorProfilerCallback11, ThreadNameChanged),
      CS_SLOT(ICorProfilerCallback11, InitializeForAttach),
      CS_SLOT(ICorProfilerCallback11, ReJITCompilationStarted),
      CS_SLOT(ICorProfilerCallback11, ConditionalWeakTableElementReferences),
      CS_SLOT(ICorProfilerCallback11, GetAssemblyReferences),
      CS_SLOT(ICorProfilerCallback11, ModuleInMemorySymbolsUpdated),
      CS_SLOT(ICorProfilerCallback11, DynamicMethodJITCompilationStarted),
      CS_SLOT(ICorProfilerCallback11, DynamicMethodUnloaded),
      CS_SLOT(ICorProfilerCallback11, EventPipeEventDelivered),
      CS_SLOT(ICorProfilerCallback11, LoadAsNotificationOnly),
      sizeof(ICorProfilerCallback11Vtbl) / sizeof(void *),
  };
  return first[version];
}

static void route(struct cs_wrapped *wrapped, IUnknown *theirs) {
  struct cs_guest *guest = wrapped->guest;
  for (int version = 1; version <= NEWEST; version++) {
    IUnknown *part = NULL;
    if (FAILED(theirs->lpVtbl->QueryInterface(theirs, cs_callback_iid(version), (void **)&part)))
      continue;
    guest->version = (uint32_t)version;
    for (size_t slot = first_slot(version); slot < first_slot(version + 1); slot++)
      wrapped->target[slot] = part;
    // A tear-off counts its own references, so it keeps this one.
    if (part == theirs) (void)part->lpVtbl->Release(part);
  }
  for (uint32_t i = 1; i < guest->proxy->refs; i++) (void)theirs->lpVtbl->AddRef(theirs);
  for (size_t slot = 0; slot < first_slot(1); slot++) wrapped->target[slot] = theirs;
}

HRESULT cs_attach_load(struct cs_wrapped *callback, const void *data, size_t size, size_t *used) {
  struct cs_guest *guest = callback->guest;
  struct cs_error err = {""};
  IClassFactory *factory;
  IUnknown *theirs;
  if (data == NULL || !cs_guest_options_from_data(&guest->options, data, size, used, &err)) {
    cs_log_important("the attach does not name a profiler: %s",
                     data != NULL ? err.text
                                  : "it has no client data, which must begin with " CS_PROFILER_PATH
                                    "=/their.so");
    return E_INVALIDARG;
  }
  HRESULT hr = cs_guest_load(guest, &IID_IClassFactory, (void **)&factory);
  if (FAILED(hr)) return hr;
  hr = factory->lpVtbl->CreateInstance(factory, NULL, cs_callback_iid(CREATED), (void **)&theirs);
  (void)factory->lpVtbl->Release(factory);
  if (FAILED(hr)) {
    cs_log_important("the profiler %s does not create a profiler object (0x%08x)",
                     guest->options.path, (unsigned)hr);
    cs_guest_unload(guest);
    return hr;
  }
  route(callback, theirs);
  return S_OK;
}

// ---- Callbacks that reach an older guest in an older form ----

static bool is_too_old(void *self, uint32_t version) {
  const struct cs_guest *guest = cs_wrapped_of(self)->guest;
  return guest->proxy != NULL && guest->version != 0 && guest->version < version;
}

// Lengths are cut as the runtime cuts them for a profiler without ICorProfilerCallback4.
static ULONG *shorten(const SIZE_T lengths[], ULONG count) {
  ULONG *out = malloc((count > 0 ? count : 1) * sizeof *out);
  for (ULONG i = 0; out != NULL && i < count; i++)
    out[i] = lengths[i] <= UINT32_MAX ? (ULONG)lengths[i] : UINT32_MAX;
  return out;
}

static HRESULT moved_references2(ICorProfilerCallback11 *self, ULONG count, ObjectID from[],
                                 ObjectID to[], SIZE_T lengths[]) {
  ICorProfilerCallback11 *theirs = THEIRS(self, ICorProfilerCallback11, MovedReferences2);
  if (!is_too_old(self, 4))
    return theirs->lpVtbl->MovedReferences2(theirs, count, from, to, lengths);
  theirs = THEIRS(self, ICorProfilerCallback11, MovedReferences);
  ULONG *cut = shorten(lengths, count);
  if (cut == NULL) return E_OUTOFMEMORY;
  HRESULT hr = theirs->lpVtbl->MovedReferences(theirs, count, from, to, cut);
  free(cut);
  return hr;
}

static HRESULT surviving_references2(ICorProfilerCallback11 *self, ULONG count, ObjectID start[],
                                     SIZE_T lengths[]) {
  ICorProfilerCallback11 *theirs = THEIRS(self, ICorProfilerCallback11, SurvivingReferences2);
  if (!is_too_old(self, 4))
    return theirs->lpVtbl->SurvivingReferences2(theirs, count, start, lengths);
  theirs = THEIRS(self, ICorProfilerCallback11, SurvivingReferences);
  ULONG *cut = shorten(lengths, count);
  if (cut == NULL) return E_OUTOFMEMORY;
  HRESULT hr = theirs->lpVtbl->SurvivingReferences(theirs, count, start, cut);
  free(cut);
  return hr;
}

void cs_attach_take_over(ICorProfilerCallback11Vtbl *vtbl) {
  vtbl->MovedReferences2 = moved_references2;
  vtbl->SurvivingReferences2 = surviving_references2;
}
