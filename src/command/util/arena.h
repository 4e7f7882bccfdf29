// SPDX-License-Identifier: MIT
// Memory that is freed all at once, for messages that point at each other until they are written.
// One thread.
#pragma once

#include <stddef.h>

struct cs_arena {  // zeroed to begin with
  void **blocks;
  size_t count, capacity;
};

// `count` objects of `size` bytes, zeroed. Out of memory ends the program (cs_allocate).
void *cs_arena_take(struct cs_arena *arena, size_t count, size_t size);
void cs_arena_free(struct cs_arena *arena);
