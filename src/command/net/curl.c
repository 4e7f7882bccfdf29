// SPDX-License-Identifier: MIT
// Loads libcurl. Invariant: either all of its functions are resolved, or none; it is never
// unloaded. One thread. Signal-safe: no.
#include "net/curl.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct cs_curl cs_curl;

// Macros of its header that would replace members.
#undef curl_easy_setopt
#undef curl_easy_getinfo

static bool resolve(void *library, const char *name, void *function) {
  void *found = dlsym(library, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

bool cs_curl_load(const char *what, struct cs_error *err) {
  struct cs_curl found;
  if (cs_curl.free != NULL) return true;
  void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    return cs_error_set(err, "%s needs libcurl, which cannot be loaded: %s", what, dlerror());
  bool all = true;
#define X(name) all = resolve(library, "curl_" #name, &found.name) && all;
  CS_CURL_FUNCTIONS(X)
#undef X
  if (!all) return cs_error_set(err, "this libcurl is too old for %s: it lacks functions", what);
  if (found.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return cs_error_set(err, "libcurl cannot be initialized");
  cs_curl = found;
  return true;
}

const char *cs_curl_certificates(void) {
  const char *file = getenv("SSL_CERT_FILE");
  return file != NULL && file[0] != '\0' ? file : NULL;
}

char *cs_curl_shown(CURLU *url) {
  static const CURLUPart hidden[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY,
                                     CURLUPART_FRAGMENT};
  char *text = NULL;
  CURLU *copy = cs_curl.url_dup(url);
  for (size_t i = 0; copy != NULL && i < CS_COUNT(hidden); i++)
    (void)cs_curl.url_set(copy, hidden[i], NULL, 0);
  if (copy != NULL) (void)cs_curl.url_get(copy, CURLUPART_URL, &text, 0);
  cs_curl.url_cleanup(copy);
  return text;
}
