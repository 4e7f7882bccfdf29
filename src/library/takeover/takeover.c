// SPDX-License-Identifier: MIT
// For programs such as test hosts that set up a profiler for the programs that they start:
// LD_PRELOAD loads this library into every descendant of `clrsnap run-profiler`. If the environment
// asks the runtime for a profiler, the constructor changes it so that the runtime loads
// libclrsnap.so, which loads the profiler.
//
// Invariants: it changes only variables that nothing but a CLR and libclrsnap.so reads, and only
// the one that the CLR would have used, so the same profiler runs; an environment that names
// libclrsnap.so already does not change. One thread: before main. Signal-safe: no. It depends on no
// other component and on no library but libc, since most programs that load it have nothing to do
// with .NET.
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libclrsnap.so"

// Reads it as the CLR does: a hexadecimal number that is not 0.
static bool is_on(const char *name) {
  const char *value = getenv(name);
  return value != NULL && strtoul(value, NULL, 16) != 0;
}

// In the CLR's order. The CLR ignores an empty variable. The second form is .NET 11's.
static const char *const names[][2] = {{"CORECLR_PROFILER_PATH_64", "CORECLR_PROFILER_PATH"},
                                       {"DOTNET_PROFILER_PATH_64", "DOTNET_PROFILER_PATH"}};
enum { CORECLR, DOTNET };

static const char *variable_in_effect(int form) {
  for (size_t i = 0; i < sizeof names[0] / sizeof names[0][0]; i++) {
    const char *value = getenv(names[form][i]);
    if (value != NULL && value[0] != '\0') return names[form][i];
  }
  return NULL;
}

static bool is_ours(const char *path) {
  const char *slash = strrchr(path, '/');
  return strcmp(slash != NULL ? slash + 1 : path, LIBRARY) == 0;
}

// Finds libclrsnap.so in this library's directory. The path is absolute because the program may
// change its working directory.
static bool find_library(char out[PATH_MAX]) {
  static const char anchor;
  Dl_info info;
  if (dladdr(&anchor, &info) == 0 || info.dli_fname == NULL || info.dli_fname[0] != '/')
    return false;
  int folder = (int)(strrchr(info.dli_fname, '/') - info.dli_fname);
  int length = snprintf(out, PATH_MAX, "%.*s/" LIBRARY, folder, info.dli_fname);
  return length < PATH_MAX && access(out, R_OK) == 0;
}

// Both forms may name the profiler, and a runtime before .NET 11 reads only one of them. If they
// name two profilers, only the first is taken over.
__attribute__((constructor)) static void take_over(void) {
  char library[PATH_MAX];
  bool on = is_on("CORECLR_ENABLE_PROFILING") || is_on("DOTNET_ENABLE_PROFILING");
  const char *first = on ? variable_in_effect(CORECLR) : NULL;
  const char *second = on ? variable_in_effect(DOTNET) : NULL;
  const char *name = first != NULL ? first : second;
  if (name == NULL || is_ours(getenv(name))) return;
  if (!find_library(library)) {
    (void)dprintf(STDERR_FILENO,
                  "clrsnap: there is no " LIBRARY
                  " beside the library that LD_PRELOAD names; %s stays as it is\n",
                  name);
    return;
  }
  bool same = second != NULL && strcmp(getenv(second), getenv(name)) == 0;
  // The profiler's path comes first: if another call fails, the CLR still loads the profiler
  // itself.
  if (setenv("CLRSNAP_PROFILER_PATH", getenv(name), 1) != 0 || setenv(name, library, 1) != 0 ||
      (same && setenv(second, library, 1) != 0))
    (void)dprintf(STDERR_FILENO, "clrsnap: out of memory; %s stays as it is\n", name);
}
