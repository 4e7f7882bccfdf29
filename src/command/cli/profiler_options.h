// SPDX-License-Identifier: MIT
// The command line of `clrsnap run-profiler`.
#ifndef CS_CLI_PROFILER_OPTIONS_H
#define CS_CLI_PROFILER_OPTIONS_H

#include <sys/types.h>

#include "cli/profiler_file.h"

struct cs_profiler_options {
  const char *profiler;  // NULL: only profilers that others set up are taken over
  CLSID clsid;
  char clsid_text[CS_CLSID_TEXT];
  bool hold, dynamic, elide_suspend;
  pid_t attach;      // 0: a program is started
  const char *data;  // the file with the profiler's client data, or NULL
  char **program;    // argv of the program, NULL-terminated
};

// The switches that are on, as the drop-in knows them; NULL ends the list.
const char **cs_profiler_switches(const struct cs_profiler_options *o, const char *names[4]);

#endif
