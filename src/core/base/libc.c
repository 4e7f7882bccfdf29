// SPDX-License-Identifier: MIT
// Tells the two C libraries apart by a function that only glibc has. Any thread. Signal-safe: no.
#include "base/libc.h"

#include <dlfcn.h>
#include <stddef.h>

bool cs_libc_is_musl(void) {
  return dlsym(RTLD_DEFAULT, "gnu_get_libc_version") == NULL;
}
