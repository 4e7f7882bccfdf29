// SPDX-License-Identifier: MIT
// The drop-in's options: from the environment at start-up, from the client data on an attach. One
// thread; not for handlers. Invariant: no unknown or malformed option goes unreported. If it is
// from the environment, which may be set for many programs, it is logged; if it is from client
// data, the attach fails.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/log.h"
#include "dropin/guest.h"

static bool set_switch(bool *out, const char *name, const char *value, struct cs_error *err) {
  if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0 && value[0] != '\0')
    return cs_error_set(err, "%s=%s is not understood: use 0 or 1", name, value);
  *out = strcmp(value, "1") == 0;
  return true;
}

static bool set_path(char path[PATH_MAX], const char *value, struct cs_error *err) {
  int n = snprintf(path, PATH_MAX, "%s", value);
  return n < PATH_MAX || cs_error_set(err, CS_PROFILER_PATH " is longer than %d bytes", PATH_MAX);
}

static bool set(struct cs_guest_options *options, const char *name, const char *value,
                struct cs_error *err) {
  const struct {
    const char *name;
    bool *at;
  } switches[] = {
      {"CLRSNAP_HOLD", &options->hold},
      {"CLRSNAP_DYNAMIC", &options->dynamic},
      {"CLRSNAP_ELIDE_SUSPEND", &options->elide_suspend},
  };
  if (strcmp(name, CS_PROFILER_PATH) == 0) return set_path(options->path, value, err);
  for (size_t i = 0; i < CS_COUNT(switches); i++)
    if (strcmp(name, switches[i].name) == 0) return set_switch(switches[i].at, name, value, err);
  return cs_error_set(err, "there is no option %.64s", name);
}

void cs_guest_options_from_environment(struct cs_guest_options *options) {
  static const char *const names[] = {CS_PROFILER_PATH, "CLRSNAP_HOLD", "CLRSNAP_DYNAMIC",
                                      "CLRSNAP_ELIDE_SUSPEND"};
  struct cs_error err;
  *options = (struct cs_guest_options){0};
  for (size_t i = 0; i < CS_COUNT(names); i++) {
    const char *value = getenv(names[i]);
    if (value != NULL && !set(options, names[i], value, &err))
      cs_log_important("%s; the profiler runs without it", err.text);
  }
}

static bool set_from_text(struct cs_guest_options *options, const char *text,
                          struct cs_error *err) {
  char name[64];
  const char *equals = strchr(text, '=');
  size_t length = equals != NULL ? (size_t)(equals - text) : 0;
  if (length == 0 || length >= sizeof name)
    return cs_error_set(err, "the client data has '%.64s' where NAME=VALUE must be", text);
  memcpy(name, text, length);
  name[length] = '\0';
  return set(options, name, equals + 1, err);
}

bool cs_guest_options_from_data(struct cs_guest_options *options, const char *data, size_t size,
                                size_t *used, struct cs_error *err) {
  size_t at = 0;
  *options = (struct cs_guest_options){0};
  while (at < size && data[at] != '\0') {
    const char *end = memchr(data + at, '\0', size - at);
    if (end == NULL) break;
    if (!set_from_text(options, data + at, err)) return false;
    at = (size_t)(end - data) + 1;
  }
  if (options->path[0] == '\0')
    return cs_error_set(err, "the client data does not begin with " CS_PROFILER_PATH "=/their.so");
  if (at >= size)
    return cs_error_set(err, "the client data's options do not end with an empty string");
  *used = at + 1;
  return true;
}
