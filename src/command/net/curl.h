// SPDX-License-Identifier: MIT
// libcurl, which is loaded only for a push or a symbol server. It depends on thirty libraries,
// whose loading would take nine tenths of the command's start-up time.
#pragma once

#include <curl/curl.h>

#include "base/error.h"

// The functions of libcurl in use, without "curl_", with the types of its header.
// clang-format off
#define CS_CURL_FUNCTIONS(X)                                                                 \
  X(global_init) X(easy_init) X(easy_cleanup) X(easy_reset) X(easy_setopt) X(easy_perform)   \
  X(easy_getinfo) X(easy_strerror) X(easy_unescape) X(free) X(multi_init) X(multi_cleanup)   \
  X(multi_add_handle) X(multi_remove_handle) X(multi_perform) X(multi_poll)                  \
  X(multi_info_read) X(slist_append) X(slist_free_all) X(url) X(url_cleanup) X(url_dup)      \
  X(url_get) X(url_set) X(url_strerror)
// clang-format on

struct cs_curl {
#define X(name) __typeof__(curl_##name) *name;
  CS_CURL_FUNCTIONS(X)
#undef X
};
extern struct cs_curl cs_curl;  // NULLs before cs_curl_load

// Loads libcurl; to be called before any other use, by one thread. `what` is the option that needs
// it, for the message. Returns false if libcurl is not installed, or cannot be initialized.
bool cs_curl_load(const char *what, struct cs_error *err);
// Returns the file with the certificates to trust, from SSL_CERT_FILE, which libcurl itself does
// not read, or NULL for the system's certificates.
const char *cs_curl_certificates(void);
// Returns the URL without its secrets, to be freed with cs_curl.free. Returns NULL if memory has
// run out.
char *cs_curl_shown(CURLU *url);
