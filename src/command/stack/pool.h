// SPDX-License-Identifier: MIT
// The thread pool of another process, as its own objects have it. One thread.
#pragma once

#include "objects/heap.h"

enum cs_pool_state {
  CS_POOL_UNKNOWN,
  CS_POOL_UNUSED,  // the program has given it no work
  CS_POOL_KNOWN,
};

struct cs_pool {
  enum cs_pool_state state;
  const char *why;             // if unknown
  uint32_t workers, min, max;  // threads that there are, and the limits of their number
  uint32_t busy;               // workers that have an item, or are looking for one
  uint64_t queued, local;      // items in all queues; of these, in the queues of single workers
  uint64_t completed;          // items, since the program began
};

// The process is stopped, and no collection moves objects.
void cs_pool_read(struct cs_heap *heap, struct cs_pool *pool);

// The rule of docs/thread-pool.md: its second condition, for two moments, and its third one.
bool cs_pool_is_late(const struct cs_pool *first, const struct cs_pool *later);
bool cs_pool_is_blocked(int pid, uint32_t waiting, uint32_t running);
enum { CS_POOL_LATE_NS = 500000000 };  // the least time between the two moments
