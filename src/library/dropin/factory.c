// SPDX-License-Identifier: MIT
// The guest's class factory, wrapped: the objects that it creates are wrapped, too. Invariant: a
// struct cs_guest is never freed, because calls through its wrappers may still be under way.
// Threads: the main thread at start-up, the diagnostics server's on an attach. Not for handlers.
#include <stdlib.h>

#include "base/log.h"
#include "clr/clr.h"
#include "dropin/guest.h"

static bool is_factory(REFIID iid) {
  return cs_guid_equal(iid, &IID_IClassFactory);
}

static HRESULT create_instance(IClassFactory *self, IUnknown *outer, REFIID iid, void **out) {
  IClassFactory *theirs = THEIRS(self, IClassFactory, CreateInstance);
  struct cs_guest *guest = cs_wrapped_of(self)->guest;
  HRESULT hr = theirs->lpVtbl->CreateInstance(theirs, outer, iid, out);
  if (FAILED(hr)) {
    cs_log_important("the profiler %s does not create a profiler object (0x%08x)",
                     guest->options.path, (unsigned)hr);
    return hr;
  }
  *out = cs_wrap_callback(guest, *out);
  return *out != NULL ? hr : E_OUTOFMEMORY;
}

static struct cs_family factories = {.is_of_kind = is_factory};

static void init(void) {
  cs_family_init(&factories);
  ((IClassFactoryVtbl *)(void *)factories.vtbl)->CreateInstance = create_instance;
}

static void *wrap_factory(struct cs_guest *guest, IUnknown *factory) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, init);
  return cs_wrap(&factories, guest, factory, true);
}

// The class factory for a class in CORECLR_PROFILER, or in an attach command, that is not clrsnap's
// own.
HRESULT cs_foreign_class_object(REFCLSID clsid, REFIID iid, void **out) {
  struct cs_guest *guest = calloc(1, sizeof *guest);
  if (guest == NULL) return E_OUTOFMEMORY;
  guest->clsid = *clsid;
  HRESULT hr;
  cs_guest_options_from_environment(&guest->options);
  if (guest->options.path[0] == '\0')
    hr = cs_attach_class_object(clsid, iid, out);
  else if ((hr = cs_guest_load(guest, iid, out)) == S_OK)
    return (*out = wrap_factory(guest, *out)) != NULL ? S_OK : E_OUTOFMEMORY;
  free(guest);
  return hr;
}
