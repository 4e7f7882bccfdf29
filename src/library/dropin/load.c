// SPDX-License-Identifier: MIT
// Loads the guest's library and gets its class factory as the runtime itself does. Invariant: if
// that fails, the runtime gets the HRESULT that it would get without clrsnap, and the log says what
// failed and why. Threads: the main thread at start-up, the diagnostics server's on an attach. Not
// for handlers.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "dropin/guest.h"

#define HRESULT_OF_WIN32(code) ((HRESULT)(0x80070000u | (code)))
enum { MOD_NOT_FOUND = 126, PROC_NOT_FOUND = 127, DLL_INIT_FAILED = 1114, PROCESS_ATTACH = 1 };

typedef BOOL dll_main(void *instance, DWORD reason, void *reserved);
typedef HRESULT dll_get_class_object(REFCLSID clsid, REFIID iid, void **out);

static void print_clsid(const CLSID *c, char text[40]) {
  (void)snprintf(text, 40, "{%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X}", (unsigned)c->Data1,
                 c->Data2, c->Data3, c->Data4[0], c->Data4[1], c->Data4[2], c->Data4[3],
                 c->Data4[4], c->Data4[5], c->Data4[6], c->Data4[7]);
}

// The runtime calls an exported DllMain, once per library.
static bool initialise(void *library) {
  dll_main *entry;
  *(void **)&entry = dlsym(library, "DllMain");
  return entry == NULL || entry(library, PROCESS_ATTACH, NULL);
}

static HRESULT open_library(struct cs_guest *guest, dll_get_class_object **entry) {
  const char *path = guest->options.path;
  guest->library = dlopen(path, RTLD_LAZY);
  if (guest->library == NULL) {
    cs_log_important("the profiler %s cannot be loaded: %s", path, dlerror());
    return HRESULT_OF_WIN32(MOD_NOT_FOUND);
  }
  if (dlsym(guest->library, "clrsnap_version") != NULL) {
    cs_log_important(CS_PROFILER_PATH
                     " names clrsnap itself (%s); it must name the library of the profiler",
                     path);
    return E_INVALIDARG;
  }
  *(void **)entry = dlsym(guest->library, "DllGetClassObject");
  if (*entry == NULL) {
    cs_log_important("%s is not a CLR profiler: it does not export DllGetClassObject", path);
    return HRESULT_OF_WIN32(PROC_NOT_FOUND);
  }
  if (initialise(guest->library)) return S_OK;
  cs_log_important("the profiler %s refuses to be loaded (its DllMain returns FALSE)", path);
  return HRESULT_OF_WIN32(DLL_INIT_FAILED);
}

HRESULT cs_guest_load(struct cs_guest *guest, REFIID iid, void **out) {
  char clsid[40];
  dll_get_class_object *entry;
  HRESULT hr = open_library(guest, &entry);
  if (hr == S_OK) {
    hr = entry(&guest->clsid, iid, out);
    print_clsid(&guest->clsid, clsid);
    if (FAILED(hr))
      cs_log_important("the profiler %s refuses the class %s (0x%08x)", guest->options.path, clsid,
                       (unsigned)hr);
    else
      cs_log("profiler %s, class %s", guest->options.path, clsid);
  }
  if (FAILED(hr)) cs_guest_unload(guest);
  return hr;
}

void cs_guest_unload(struct cs_guest *guest) {
  if (guest->library != NULL) (void)dlclose(guest->library);
  guest->library = NULL;
}
