// SPDX-License-Identifier: MIT
// The variables by which a program's environment names the profilers that its runtime loads. Each
// has two forms: CORECLR_PROFILER and the like, which every runtime reads, and DOTNET_PROFILER and
// the like, which .NET 11 reads as well. If both are set, it is not documented which one wins, so
// the functions here leave only one.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

// Returns the class of the main profiler that the environment of a process names (0: this process),
// or NULL if it names none, or only `except`. The caller frees it. `dotnet`: DOTNET_ variables
// count.
char *cs_profiler_named(pid_t pid, bool dotnet, const char *except);

// Makes this library the main profiler of this environment. Returns false if memory has run out.
bool cs_profiler_put(const char *class, const char *library);
// Adds it to the notification profilers. The path may not have a ';'.
bool cs_profiler_put_notified(const char *class, const char *library);
