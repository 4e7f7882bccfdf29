// SPDX-License-Identifier: MIT
// OTLP's profiles signal: the request that is posted to a collector, and its response.
#pragma once

#include "profile/profile.h"

// Attributes of the resource, besides those that the profile has (process.pid and the runtime).
struct cs_resource {
  struct cs_attribute {
    const char *key, *value;
  } * attributes;
  size_t count;
};

// Writes an ExportProfilesServiceRequest, uncompressed. If `resource`, which may be NULL, has no
// service.name, cs_service_name makes one. Returns false if a write has failed.
bool cs_write_otlp_request(const struct cs_profile *p, const struct cs_resource *resource,
                           FILE *out);

// The service's name from its command line: the assembly, or else the program. Truncated to `cap`.
void cs_service_name(const char *program, char *out, size_t cap);

// Returns how many profiles the response says were rejected, and why: `message` is NUL-terminated,
// and empty if there is no reason. Bytes that are no response reject nothing.
int64_t cs_otlp_rejected(const void *response, size_t size, char *message, size_t cap);
