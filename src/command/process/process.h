// SPDX-License-Identifier: MIT
// What can be found out about a .NET process from outside: from /proc and its diagnostics port.
#pragma once

#include "process/diag.h"

struct cs_process {
  pid_t pid;
  unsigned uid;
  bool responds;     // its diagnostics port does; otherwise `why` says why not
  bool has_coreclr;  // libcoreclr.so is mapped, which a single-file program does not do
  char *command;     // the command line, or the name
  char *runtime;     // "10.0.12"; NULL: not known
  char *product;     // the runtime's full version; NULL: not known
  char *assembly;    // the name of the program's main assembly; NULL: not known
  struct cs_error why;
};

// Looks at the process, and queries its port if that is allowed. Returns false if it is not a .NET
// process, or none that can be seen from here, or there is none; p->why says so.
bool cs_process_inspect(struct cs_process *p, pid_t pid);
void cs_process_free(struct cs_process *p);

// Calls `visit` for each .NET process that this user can see, in the order of their PIDs. Returns
// false if /proc cannot be read.
bool cs_processes_visit(void (*visit)(const struct cs_process *p, void *data), void *data,
                        struct cs_error *err);
