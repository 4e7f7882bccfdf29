// SPDX-License-Identifier: MIT
// libcurl, loaded when something is to be pushed. It brings thirty libraries with it, whose loading
// is nine tenths of the time that the command needs to start, and `stack` and `top` are to answer
// at once.
#ifndef CS_PUSH_CURL_H
#define CS_PUSH_CURL_H

#include <curl/curl.h>

#include "base/error.h"

// Its functions by their names less "curl_", with the types of its header.
// clang-format off
#define CS_CURL_FUNCTIONS(X)                                                                 \
  X(global_init) X(easy_init) X(easy_cleanup) X(easy_reset) X(easy_setopt) X(easy_perform)   \
  X(easy_getinfo) X(easy_strerror) X(easy_unescape) X(free) X(slist_append)                  \
  X(slist_free_all) X(url) X(url_cleanup) X(url_dup) X(url_get) X(url_set) X(url_strerror)
// clang-format on

struct cs_curl {
#define X(name) __typeof__(curl_##name) *name;
  CS_CURL_FUNCTIONS(X)
#undef X
};
extern struct cs_curl cs_curl;  // NULLs before cs_curl_load

// Before any other use, on one thread. False: it is not installed, or does not start.
bool cs_curl_load(struct cs_error *err);

#endif
