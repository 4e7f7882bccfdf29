// SPDX-License-Identifier: MIT
// For programs such as test hosts, which set up a profiler for the programs that they start:
// LD_PRELOAD loads this library into every descendant of `clrsnap run-profiler`. If the environment
// asks the runtime for a profiler, the constructor changes it so that the runtime loads
// libclrsnap.so, and libclrsnap.so the profiler.
//
// Invariants: it changes only variables that nothing but a CLR and libclrsnap.so reads, and only
// the one that the CLR would have used, so the same profiler runs; an environment that names
// libclrsnap.so already does not change. One thread: before main. Signal-safe: no. It depends on no
// other room and on no library but libc, since most of the programs that it is loaded into have
// nothing to do with .NET.
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libclrsnap.so"

// As the CLR reads it: a hexadecimal number that is not 0.
static bool profiling_is_on(void) {
  const char *value = getenv("CORECLR_ENABLE_PROFILING");
  return value != NULL && strtoul(value, NULL, 16) != 0;
}

// In the CLR's order. The CLR ignores an empty variable.
static const char *variable_in_effect(void) {
  static const char *const names[] = {"CORECLR_PROFILER_PATH_64", "CORECLR_PROFILER_PATH"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *value = getenv(names[i]);
    if (value != NULL && value[0] != '\0') return names[i];
  }
  return NULL;
}

static bool is_ours(const char *path) {
  const char *slash = strrchr(path, '/');
  return strcmp(slash != NULL ? slash + 1 : path, LIBRARY) == 0;
}

// libclrsnap.so in this library's folder. The path is absolute because the program may change its
// working directory.
static bool find_library(char out[PATH_MAX]) {
  static const char here;
  Dl_info info;
  if (dladdr(&here, &info) == 0 || info.dli_fname == NULL || info.dli_fname[0] != '/') return false;
  int folder = (int)(strrchr(info.dli_fname, '/') - info.dli_fname);
  int length = snprintf(out, PATH_MAX, "%.*s/" LIBRARY, folder, info.dli_fname);
  return length < PATH_MAX && access(out, R_OK) == 0;
}

__attribute__((constructor)) static void take_over(void) {
  char library[PATH_MAX];
  const char *name = profiling_is_on() ? variable_in_effect() : NULL;
  if (name == NULL || is_ours(getenv(name))) return;
  if (!find_library(library)) {
    (void)dprintf(STDERR_FILENO,
                  "clrsnap: there is no " LIBRARY
                  " beside the library that LD_PRELOAD names; %s stays as it is\n",
                  name);
    return;
  }
  // The profiler's path comes first: if the second call fails, the CLR still loads the profiler
  // itself.
  if (setenv("CLRSNAP_PROFILER_PATH", getenv(name), 1) != 0 || setenv(name, library, 1) != 0)
    (void)dprintf(STDERR_FILENO, "clrsnap: out of memory; %s stays as it is\n", name);
}
