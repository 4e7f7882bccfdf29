// SPDX-License-Identifier: MIT
// dlopen and its relatives for the command that is linked statically and can load nothing: names of C++ are demangled
// by libstdc++'s code, which is linked in; libcurl is not available, and dlerror says why. Part of packages only. One
// thread. Signal-safe: no.
#include <dlfcn.h>
#include <string.h>

char *__cxa_demangle(const char *name, char *buffer, size_t *size, int *status);

static char cxx;  // its address is the handle of libstdc++

void *dlopen(const char *file, int mode) {
  (void)mode;
  return file != NULL && strcmp(file, "libstdc++.so.6") == 0 ? &cxx : NULL;
}

void *dlsym(void *restrict library, const char *restrict name) {
  void *found = NULL;
  char *(*demangle)(const char *, char *, size_t *, int *) = __cxa_demangle;
  if (library == &cxx && strcmp(name, "__cxa_demangle") == 0)
    memcpy(&found, &demangle, sizeof found);  // ISO C has no cast from a function to an object pointer
  return found;
}

char *dlerror(void) {
  static char why[] = "this clrsnap is linked statically, for any system; the package for systems with glibc can push";
  return why;
}
