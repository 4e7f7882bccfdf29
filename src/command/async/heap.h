// SPDX-License-Identifier: MIT
// The managed heap of a stopped process, as the collector describes it to debuggers
// (remote/collector.c): where objects are, and the gaps between them. Not for handlers. One thread.
#pragma once

#include "remote/remote.h"

struct cs_async_heap_part {
  uint64_t begin, end;  // objects lie from `begin` to `end`, one after the other
};
// Memory that a thread may allocate from without a lock. It contains no objects yet.
struct cs_async_heap_gap {
  uint64_t begin, end;
};

struct cs_async_heap {  // both lists by address
  struct cs_async_heap_part *parts;
  size_t part_count, part_capacity;
  struct cs_async_heap_gap *gaps;
  size_t gap_count, gap_capacity;
  uint64_t bytes;  // of all parts
};

enum cs_async_heap_state {
  CS_ASYNC_HEAP_FOUND,
  CS_ASYNC_HEAP_COLLECTED,  // a collection is moving objects: try again when the process has run on
  CS_ASYNC_HEAP_UNKNOWN,    // it is not described as expected: *err
};
// The process is stopped.
enum cs_async_heap_state cs_async_heap_find(struct cs_remote *remote, struct cs_async_heap *heap,
                                            struct cs_error *err);
void cs_async_heap_free(struct cs_async_heap *heap);

// Returns the distance from an object to the next one, by the two sizes of its class.
static inline uint64_t cs_async_heap_object_bytes(uint32_t base, uint32_t element, uint32_t count) {
  uint64_t bytes = base + (uint64_t)element * count;
  return (bytes + 7) & ~7ull;
}
