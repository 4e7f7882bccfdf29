// SPDX-License-Identifier: MIT
// Loads libcurl. Invariant: either all of its functions are resolved, or none; it is never
// unloaded. One thread. Signal-safe: no.
#include "push/curl.h"

#include <dlfcn.h>
#include <string.h>

struct cs_curl cs_curl;

// Macros of its header that would replace members.
#undef curl_easy_setopt
#undef curl_easy_getinfo

static bool resolve(void *library, const char *name, void *function) {
  void *found = dlsym(library, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

bool cs_curl_load(struct cs_error *err) {
  struct cs_curl found;
  if (cs_curl.free != NULL) return true;
  void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    return cs_error_set(err, "pushing needs libcurl, which cannot be loaded: %s", dlerror());
  bool all = true;
#define X(name) all = resolve(library, "curl_" #name, &found.name) && all;
  CS_CURL_FUNCTIONS(X)
#undef X
  if (!all) return cs_error_set(err, "this libcurl is too old for pushing: it lacks functions");
  if (found.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return cs_error_set(err, "libcurl cannot be initialized");
  cs_curl = found;
  return true;
}
