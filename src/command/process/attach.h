// SPDX-License-Identifier: MIT
// Having a running .NET program load a profiler, by its diagnostics port.
#ifndef CS_PROCESS_ATTACH_H
#define CS_PROCESS_ATTACH_H

#include "process/diag.h"

struct cs_attach {
  pid_t pid;
  const CLSID *clsid;                  // NULL: our own agent
  const char *library;                 // that the runtime is to load
  const struct cs_diag_payload *data;  // for InitializeForAttach
};

// Waits until the runtime has loaded the profiler and has had its answer. False: *err says in words
// what the runtime or the profiler has answered; *refusal as in cs_diag_command.
bool cs_attach(const struct cs_attach *attach, HRESULT *refusal, struct cs_error *err);

// Does the process see the file, a profiler of somebody else's? It may live in a container.
bool cs_attach_check_file(pid_t pid, const char *path, struct cs_error *err);

// The runtime decides when it starts whether it keeps what is inlined. False: it does not.
bool cs_attach_check_inlined(pid_t pid, struct cs_error *err);

#endif
