// SPDX-License-Identifier: MIT
// The bounds of a stack: by the C library, or the mapping that an address lies in. Not for
// handlers. Invariant: a result was mapped a moment ago, and may be gone by now.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/grow.h"
#include "base/prefix.h"

#include "threads/stackmap.h"

// The main thread's stack grows downwards as it is used, to its limit.
static uint64_t lowest_of_main(uint64_t lo, uint64_t hi) {
  struct rlimit limit;
  uint64_t size = 8u << 20;
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    size = limit.rlim_cur;
  return hi - lo > size ? lo : hi - size;
}

bool cs_stack_of_self(struct cs_stack *stack) {
  pthread_attr_t attr;
  void *at;
  size_t size;
  if (pthread_getattr_np(pthread_self(), &attr) != 0) return false;
  bool ok = pthread_attr_getstack(&attr, &at, &size) == 0;
  (void)pthread_attr_destroy(&attr);
  if (!ok) return false;
  stack->lo = (uint64_t)(uintptr_t)at;
  stack->hi = stack->lo + size;
  return true;
}

// Reads a line of /proc/self/maps. Returns false if no stack can be in this mapping.
static bool read_line(char *at, struct cs_stack *stack) {
  uint64_t lo = strtoull(at, &at, 16);
  uint64_t hi = *at == '-' ? strtoull(at + 1, &at, 16) : 0;
  if (!cs_has_prefix(at, " rw")) return false;
  bool is_main = strstr(at, "[stack]") != NULL;
  *stack = (struct cs_stack){.lo = is_main ? lowest_of_main(lo, hi) : lo, .hi = hi};
  return true;
}

bool cs_stack_around(uint64_t addr, struct cs_stack *stack) {
  char line[512];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) return false;
  while (!found && fgets(line, sizeof line, maps) != NULL) {
    struct cs_stack mapping;
    found = read_line(line, &mapping) && addr >= mapping.lo && addr < mapping.hi;
    if (found) *stack = mapping;
  }
  (void)fclose(maps);
  return found;
}

void cs_stack_maps_read(struct cs_stack_maps *all) {
  char line[512];
  size_t room = 0;
  *all = (struct cs_stack_maps){NULL, 0};
  FILE *maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) return;
  while (fgets(line, sizeof line, maps) != NULL) {
    struct cs_stack *stacks = cs_grow_or_not(all->stacks, all->count, &room, sizeof *stacks);
    if (stacks == NULL) break;
    all->stacks = stacks;
    if (read_line(line, &all->stacks[all->count])) all->count++;
  }
  (void)fclose(maps);
}

bool cs_stack_maps_find(const struct cs_stack_maps *all, uint64_t addr, struct cs_stack *stack) {
  for (uint32_t i = 0; i < all->count; i++) {
    if (addr < all->stacks[i].lo || addr >= all->stacks[i].hi) continue;
    *stack = all->stacks[i];
    return true;
  }
  return false;
}

void cs_stack_maps_free(struct cs_stack_maps *all) {
  free(all->stacks);
  *all = (struct cs_stack_maps){NULL, 0};
}
