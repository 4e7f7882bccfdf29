// SPDX-License-Identifier: MIT
// C++ exceptions, whose unwinder asks the loader for the loaded libraries.
#include "torture.h"

static __attribute__((noinline)) uint64_t down(uint64_t seed, int depth) {
  if (depth == 0) throw seed;
  return down(seed, depth - 1) + 1;
}

uint64_t torture_throw(uint64_t seed, int count) {
  for (int i = 0; i < count; i++) {
    try {
      seed = down(mix(seed, static_cast<uint64_t>(i)), i);
    } catch (uint64_t thrown) {
      seed = thrown;
    }
  }
  return seed;
}
