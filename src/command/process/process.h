// SPDX-License-Identifier: MIT
// What can be known of a .NET process from outside: by /proc, and by asking its diagnostics port.
#ifndef CS_PROCESS_PROCESS_H
#define CS_PROCESS_PROCESS_H

#include "process/diag.h"

struct cs_process {
  pid_t pid;
  unsigned uid;
  bool answers;      // its diagnostics port has; else `why` says why not
  bool has_coreclr;  // libcoreclr.so is mapped: not so of a single-file program
  char *command;     // the command line, or the name
  char *runtime;     // "10.0.12"; NULL: not known
  char *product;     // all that the runtime calls itself; NULL: not known
  char *assembly;    // the name of the program's main assembly; NULL: not known
  struct cs_error why;
};

// Looks at the process, and asks it if it may be asked. False: it is no .NET process that can be
// seen from here, or there is none; why says so.
bool cs_process_look(struct cs_process *p, pid_t pid);
void cs_process_free(struct cs_process *p);

// Calls `visit` for each .NET process that this user can see, by rising number. True: /proc could
// be read.
bool cs_processes_visit(void (*visit)(const struct cs_process *p, void *data), void *data,
                        struct cs_error *err);

#endif
