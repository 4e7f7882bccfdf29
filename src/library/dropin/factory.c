// SPDX-License-Identifier: MIT
// Their class factory, wrapped: what it creates comes wrapped, too. Threads: the main thread at
// start-up, the diagnostics server's on attach. Not for handlers. Invariant: a guest lives for the
// process, since calls may still be on their way into its wrappers.
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
    cs_log_important("the profiler %s makes no profiler object (0x%08x)", guest->options.path,
                     (unsigned)hr);
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

void *cs_wrap_factory(struct cs_guest *guest, IUnknown *factory) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, init);
  return cs_wrap(&factories, guest, factory, true);
}

// The class that CORECLR_PROFILER or an attach command names, when it is not clrsnap's own.
HRESULT cs_foreign_class_object(REFCLSID clsid, REFIID iid, void **out) {
  struct cs_guest *guest = calloc(1, sizeof *guest);
  if (guest == NULL) return E_OUTOFMEMORY;
  guest->clsid = *clsid;
  HRESULT hr;
  cs_guest_options_from_environment(&guest->options);
  if (guest->options.path[0] == '\0')
    hr = cs_attach_class_object(clsid, iid, out);
  else if ((hr = cs_guest_load(guest, iid, out)) == S_OK)
    return (*out = cs_wrap_factory(guest, *out)) != NULL ? S_OK : E_OUTOFMEMORY;
  free(guest);
  return hr;
}
