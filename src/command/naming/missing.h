// SPDX-License-Identifier: MIT
// A list of files that gave no names or lines, short enough to be read: a few with their reasons,
// and the number of the rest.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct cs_missing {
  char *text;  // the caller's, with room for `size` bytes
  size_t size;
  unsigned named, more, framework;
};

// `framework`: it is only counted.
void cs_missing_add(struct cs_missing *list, const char *path, const char *why, bool framework);
// Adds how many there are that the list does not name.
void cs_missing_end(struct cs_missing *list);
