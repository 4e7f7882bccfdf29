// SPDX-License-Identifier: MIT
// Makes a running .NET program load a profiler, through its diagnostics port.
#pragma once

#include "process/diag.h"

struct cs_attach {
  pid_t pid;
  const CLSID *clsid;                  // NULL: our own agent
  const char *library;                 // that the runtime is to load
  const struct cs_diag_payload *data;  // for InitializeForAttach
};

// Waits until the runtime has loaded and initialized the profiler. Returns false on failure; *err
// explains what the runtime or the profiler responded; *refusal as in cs_diag_command.
bool cs_attach(const struct cs_attach *attach, HRESULT *refusal, struct cs_error *err);

// Checks that the process sees the file, another vendor's profiler: it may be in a container.
bool cs_attach_check_file(pid_t pid, const char *path, struct cs_error *err);

// Checks that the runtime records inlining, which it decides when it starts.
bool cs_attach_check_inlined(pid_t pid, struct cs_error *err);
