// SPDX-License-Identifier: MIT
// A hash table from u64 to u32, and an interning pool of strings on top of it. Both only grow.
// One thread. Out of memory ends the command (cs_grow).
#pragma once

#include <stdlib.h>

#include "base/base.h"

struct cs_map {
  struct cs_map_slot {
    uint64_t key;
    uint32_t value, used;
  } * slots;
  size_t count, capacity;  // capacity: 0 or a power of two
};

// Returns the value of `key`, which becomes `fresh` if there was none; *added says whether.
uint32_t cs_map_put(struct cs_map *map, uint64_t key, uint32_t fresh, bool *added);
bool cs_map_get(const struct cs_map *map, uint64_t key, uint32_t *value);
void cs_map_free(struct cs_map *map);

struct cs_strings {
  char *bytes;  // all strings, each with a NUL
  size_t used, room;
  struct cs_string {
    size_t offset, len;
    uint32_t next;  // another one with the same hash; UINT32_MAX: none
  } * items;
  size_t count, capacity;
  struct cs_map by_hash;
};

uint32_t cs_strings_add(struct cs_strings *s, const char *data, size_t len);
// Adds the text as it is shown to people (base/print.h): readers of protobuf refuse a file with a
// string that is not UTF-8, and print other strings as they are.
uint32_t cs_strings_add_plain(struct cs_strings *s, const char *data, size_t len);
const char *cs_strings_get(const struct cs_strings *s, uint32_t id, size_t *len);
// All strings by id, valid until the next one is added; the caller frees the array.
char **cs_strings_table(const struct cs_strings *s);
void cs_strings_free(struct cs_strings *s);

// What a comparison for qsort returns; of several things, CS_ORDER(first) ?: CS_ORDER(second).
#define CS_ORDER(x, y) (((x) > (y)) - ((x) < (y)))
// qsort, which must not be called without items.
static inline void cs_sort(void *items, size_t count, size_t size,
                           int (*compare)(const void *a, const void *b)) {
  if (count > 1) qsort(items, count, size, compare);
}

// Searches a sorted array. Returns the first index in [from, to) for which the condition, an
// expression of the index `i`, does not hold, or `to` if there is none. It holds for all before
// that one, and for none after it.
#define CS_FIRST_NOT(i, from, to, condition)   \
  ({                                           \
    size_t first_ = (from), end_ = (to);       \
    while (first_ < end_) {                    \
      size_t i = first_ + (end_ - first_) / 2; \
      if (condition)                           \
        first_ = i + 1;                        \
      else                                     \
        end_ = i;                              \
    }                                          \
    first_;                                    \
  })

// Makes room for one more item. Returns `items`, which may have moved.
void *cs_grow(void *items, size_t count, size_t *capacity, size_t item_bytes);
// Makes room for `wanted` items in all.
#define CS_RESERVE(items, wanted, capacity) \
  while ((capacity) < (wanted)) (items) = cs_grow((items), (capacity), &(capacity), sizeof *(items))
// Appends the value to the array `items`, which has `count` of `capacity` items: three variables,
// named more than once. The value is what follows, and is evaluated when there is room for it.
#define CS_APPEND(items, count, capacity, ...)                        \
  ((items) = cs_grow((items), (count), &(capacity), sizeof *(items)), \
   (items)[(count)++] = __VA_ARGS__)
void *cs_allocate(size_t bytes);  // zeroed
