// SPDX-License-Identifier: MIT
// Where profiles are pushed to: "otlp+http://host:4318", "pyroscope+https://host/?name=app".
#pragma once

#include "formats/otlp.h"
#include "net/curl.h"
#include "profile/profile.h"
#include "push/options.h"

enum cs_push_kind { CS_PUSH_OTLP, CS_PUSH_PYROSCOPE };

#define CS_PUSH_MAX_ATTRIBUTES 64

struct cs_push_target {
  enum cs_push_kind kind;
  CURLU *url;
  char *shown;                 // the URL without user, password and query, for people
  struct curl_slist *headers;  // of every request
  bool named;                  // Pyroscope: the URL contains the application's name
  long timeout_ms;             // of one request
  const char *certificates;    // a file with the trusted ones; NULL: the system's
  // The resource's attributes, from the environment and --service. `texts` owns their strings.
  struct cs_attribute attributes[CS_PUSH_MAX_ATTRIBUTES];
  char *texts[2 * CS_PUSH_MAX_ATTRIBUTES];
  size_t attribute_count, text_count;
};

bool cs_push_target_open(struct cs_push_target *t, const struct cs_push_options *options,
                         struct cs_error *err);
void cs_push_target_close(struct cs_push_target *t);

// A profile as a request: its body (to be freed) and the whole URL (to be freed with curl_free).
struct cs_push_request {
  char *body, *url;
  size_t size;
};
bool cs_push_target_request(const struct cs_push_target *t, const struct cs_profile *p,
                            struct cs_push_request *out, struct cs_error *err);
