// SPDX-License-Identifier: MIT
// File names from paths. Any thread. Not for handlers.
#pragma once

#include <string.h>

// Returns the part after the last '/', or all of `path` if it has none.
static inline const char *cs_file_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

// The same for a path from a compiler, which may have run on Windows.
static inline const char *cs_file_of_source(const char *path) {
  const char *file = cs_file_of(path), *back = strrchr(file, '\\');
  return back != NULL ? back + 1 : file;
}
