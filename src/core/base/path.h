// SPDX-License-Identifier: MIT
// File names out of paths. Any thread. Not for handlers.
#ifndef CS_BASE_PATH_H
#define CS_BASE_PATH_H

#include <string.h>

// What is behind the last '/'; all of it when there is none.
static inline const char *cs_file_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

// The same of a path that a compiler has written down: it may have run on Windows.
static inline const char *cs_file_of_source(const char *path) {
  const char *file = cs_file_of(path), *back = strrchr(file, '\\');
  return back != NULL ? back + 1 : file;
}

#endif
