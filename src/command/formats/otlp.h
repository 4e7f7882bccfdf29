// SPDX-License-Identifier: MIT
// OTLP's profiles signal: the request that is posted to a collector, and its answer.
#ifndef CS_FORMATS_OTLP_H
#define CS_FORMATS_OTLP_H

#include "profile/profile.h"

// What the resource is said to be, beside what the profile knows (process.pid and the runtime).
struct cs_resource {
  struct cs_attribute {
    const char *key, *value;
  } * attributes;
  size_t count;
};

// An ExportProfilesServiceRequest, not compressed. Without a service.name in `resource` (which may
// be NULL) it is cs_service_name's. False: a write failed.
bool cs_write_otlp_request(const struct cs_profile *p, const struct cs_resource *resource,
                           FILE *out);

// The name of the service by its command line: the assembly, else the program. Cut at `cap`.
void cs_service_name(const char *program, char *out, size_t cap);

// How many profiles of a request were not taken, by the response's bytes, and why: `message` is
// terminated, and empty if nothing was said. What is no response is one that says nothing.
int64_t cs_otlp_rejected(const void *response, size_t size, char *message, size_t cap);

#endif
