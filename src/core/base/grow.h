// SPDX-License-Identifier: MIT
// Growable arrays, and memory in whole pages. Any thread. Not for handlers.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

// ---- Whole pages, for large blocks that are soon freed ----
// malloc would not serve: in a thread's own arena it keeps what is free at the end, and a large
// block that is freed raises, for good, the thresholds by which it treats the program's blocks.

// Makes a block of `bytes` of one of `old` bytes, which may move; at NULL, a new one. Returns NULL
// if there is no memory; then the old block is as before. With AddressSanitizer it is malloc's, so
// that accesses beyond its end are noticed.
static inline void *cs_pages_grow(void *at, size_t old, size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  (void)old;
  return realloc(at, bytes);
#else
  void *block = at == NULL
                    ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                    : mremap(at, old, bytes, MREMAP_MAYMOVE);
  return block != MAP_FAILED ? block : NULL;
#endif
}

static inline void cs_pages_free(void *at, size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  (void)bytes;
  free(at);
#else
  if (at != NULL) (void)munmap(at, bytes);
#endif
}

// Zeroes private memory of the library, and gives the pages that are wholly within it back to the
// kernel. A concurrent reader sees what was there or zeros.
static inline void cs_pages_zero(void *at, size_t bytes) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)at, end = begin + bytes;
  uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (first >= last || madvise((void *)first, last - first, MADV_DONTNEED) != 0) {
    memset(at, 0, bytes);  // too small, or locked in memory
    return;
  }
  memset(at, 0, first - begin);
  memset((void *)last, 0, end - last);
}
