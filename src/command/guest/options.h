// SPDX-License-Identifier: MIT
// The command line of `clrsnap run-profiler`.
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "guest/file.h"

struct cs_profiler_options {
  const char *profiler;  // NULL: only profilers that others set up are taken over
  CLSID clsid;
  char clsid_text[CS_CLSID_TEXT];
  bool hold, dynamic, elide_suspend;
  pid_t attach;      // 0: a program is started
  const char *data;  // the file with the profiler's client data, or NULL
  char **program;    // argv of the program, NULL-terminated
};

// Returns the names of the drop-in's switches that are on, up to a NULL.
static inline const char **cs_profiler_switches(const struct cs_profiler_options *o,
                                                const char *names[4]) {
  size_t n = 0;
  if (o->hold) names[n++] = "CLRSNAP_HOLD";
  if (o->dynamic) names[n++] = "CLRSNAP_DYNAMIC";
  if (o->elide_suspend) names[n++] = "CLRSNAP_ELIDE_SUSPEND";
  names[n] = NULL;
  return names;
}
