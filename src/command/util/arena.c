// SPDX-License-Identifier: MIT
// A list of blocks. Requests are few and large, tables of a whole profile, so each gets a block of
// its own. One thread. Signal-safe: no.
#include "util/arena.h"

#include <stdlib.h>

#include "util/map.h"

void *cs_arena_take(struct cs_arena *arena, size_t count, size_t size) {
  void *block = cs_allocate(count * size);
  return CS_APPEND(arena->blocks, arena->count, arena->capacity, block);
}

void cs_arena_free(struct cs_arena *arena) {
  for (size_t i = 0; i < arena->count; i++) free(arena->blocks[i]);
  free(arena->blocks);
  *arena = (struct cs_arena){NULL, 0, 0};
}
