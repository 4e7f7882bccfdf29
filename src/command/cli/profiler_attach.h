// SPDX-License-Identifier: MIT
// Loading somebody else's profiler, through clrsnap, into a program that runs.
#ifndef CS_CLI_PROFILER_ATTACH_H
#define CS_CLI_PROFILER_ATTACH_H

#include "cli/profiler_options.h"

// Waits until the profiler is loaded and has been asked. `library`: libclrsnap.so; `profiler`:
// theirs.
bool cs_profiler_attach(const struct cs_profiler_options *o, const char *library,
                        const char *profiler, struct cs_error *err);

#endif
