// SPDX-License-Identifier: MIT
// Prefixes of strings. Any thread. Not for handlers.
#pragma once

#include <stdbool.h>
#include <string.h>

static inline bool cs_has_prefix(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

// The same for a string that need not end with a NUL.
static inline bool cs_has_prefix_in(const char *text, size_t len, const char *prefix) {
  size_t wanted = strlen(prefix);
  return len >= wanted && memcmp(text, prefix, wanted) == 0;
}
