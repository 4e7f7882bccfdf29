// SPDX-License-Identifier: MIT
// Blocks of all sizes: filled, verified, grown and freed; and a fault.
#include <stdlib.h>
#include <string.h>

#include "torture.h"

enum { BLOCKS = 64, LARGEST = 1 << 16 };

struct block {
  unsigned char *at, fill;
  size_t size;
};

static int whole(const struct block *b) {
  for (size_t i = 0; i < b->size; i += 61)
    if (b->at[i] != b->fill) return 0;
  return 1;
}

uint64_t torture_malloc(uint64_t seed, int count, torture_function *function) {
  struct block blocks[BLOCKS] = {0};
  uint64_t sum = seed, random = seed;
  for (int i = 0; i < count; i++) {
    random = mix(random, (uint64_t)i);
    struct block *b = &blocks[random % BLOCKS];
    if (!whole(b)) return 0;
    size_t size = (random >> 8) % (random >> 32 & 7 ? 600 : LARGEST);
    unsigned char *at =
        random >> 40 & 1 ? realloc(b->at, size + 1) : (free(b->at), malloc(size + 1));
    if (at == 0) abort();
    *b = (struct block){at, (unsigned char)(random >> 48), size};
    memset(at, b->fill, size);
    sum = mix(sum, size + b->fill);
    if (function != 0 && i % 50 == 0) sum = function(sum);
  }
  for (int i = 0; i < BLOCKS; i++) {
    if (!whole(&blocks[i])) return 0;
    free(blocks[i].at);
  }
  return sum;
}

void torture_fault(void) {
  static volatile int *volatile nowhere;
  *nowhere = 1;
}
