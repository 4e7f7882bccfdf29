// SPDX-License-Identifier: MIT
// The bounds of a stack that nobody has told: the mapping that its stack pointer lies in. Not for
// handlers. Invariant: what is answered was mapped a moment ago; no more is claimed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "snapshot/registry.h"

// The main thread's stack grows downwards as it is used, to its limit.
static uint64_t lowest_of_main(uint64_t lo, uint64_t hi) {
  struct rlimit limit;
  uint64_t size = 8u << 20;
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    size = limit.rlim_cur;
  return hi - lo > size ? lo : hi - size;
}

bool cs_stack_around(uint64_t addr, struct cs_stack *stack) {
  char line[512];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) return false;
  while (!found && fgets(line, sizeof line, maps) != NULL) {
    char *at = line;
    uint64_t lo = strtoull(at, &at, 16);
    uint64_t hi = *at == '-' ? strtoull(at + 1, &at, 16) : 0;
    if (addr < lo || addr >= hi || strncmp(at, " rw", 3) != 0) continue;
    stack->lo = strstr(at, "[stack]") != NULL ? lowest_of_main(lo, hi) : lo;
    stack->hi = hi;
    found = true;
  }
  (void)fclose(maps);
  return found;
}
