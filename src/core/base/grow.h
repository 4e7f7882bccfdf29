// SPDX-License-Identifier: MIT
// Arrays that grow. Any thread. Not for handlers.
#pragma once

#include <stdlib.h>

// Makes room for one more item of `each` bytes in an array that has `count` of `*capacity`. Returns
// the array, which may have moved, or NULL if there is no memory; then the old one is as before.
static inline void *cs_grow_or_not(void *items, size_t count, size_t *capacity, size_t each) {
  enum { FIRST = 16 };
  if (count < *capacity) return items;
  size_t wanted = *capacity == 0 ? FIRST : *capacity * 2;
  void *moved = reallocarray(items, wanted, each);
  if (moved != NULL) *capacity = wanted;
  return moved;
}
