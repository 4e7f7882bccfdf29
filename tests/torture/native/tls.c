// SPDX-License-Identifier: MIT
// A library with thread-local memory that is allocated at its first use.
#include "torture.h"

enum { WORDS = 20000 };
static _Thread_local uint64_t words[WORDS];

__attribute__((visibility("default"))) uint64_t tls_sum(uint64_t seed) {
  for (int i = 0; i < WORDS; i += 100) words[i] = mix(seed, (uint64_t)i);
  uint64_t sum = 0;
  for (int i = 0; i < WORDS; i++) sum = mix(sum, words[i]);
  return sum;
}
