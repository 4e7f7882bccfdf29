// SPDX-License-Identifier: MIT
// FunctionIDs from memory. A ReadyToRun image has a hash map from entry points to MethodDescs, with
// all methods that have been prepared to run, so all code that runs is in it. A funclet is a
// function of its own that follows its method's main body, so for a funclet the functions before it
// are looked up, one after the other, until one is in the map. Signal-safe: yes.
//
// The map may grow while it is read: the runtime then fills a new array, replaces the old one by
// it, and frees the old one when it stops for a collection. Invariant: a result is used only if the
// map had the same array before and after, and every read of it succeeded. Otherwise the map is
// read again, since a missed entry would lead to the wrong method.
#include "codemap/method.h"

#include "codemap/r2r.h"
#include "contract/supported.h"

enum {
  MAX_BACK = 512,      // funclets of one method
  MAX_TRIES = 8,       // look-ups in a map that grows meanwhile
  MAX_PROBES = 4096,   // buckets probed for one key
  MAX_SLOTS = 4,       // in a bucket; the descriptor must agree
  FIRST_REAL_KEY = 2,  // 0 is an empty slot, 1 a deleted one
};

struct map {
  const struct cs_world *world;
  uint64_t field;  // address of the pointer to the buckets
  uint64_t buckets;
  uint32_t count;
};
struct bucket {
  uint64_t key[MAX_SLOTS], value[MAX_SLOTS];
};

CS_ISLAND static bool open_map(struct map *map, const struct cs_world *world, uint64_t address) {
  const struct cs_layout *l = &world->layout;
  map->world = world;
  map->field = address + l->hash_map.buckets;
  return l->hash_slots == MAX_SLOTS && cs_world_read(world, map->field, &map->buckets, 8) &&
         map->buckets != 0 && cs_world_read(world, map->buckets, &map->count, 4) && map->count > 1;
}

CS_ISLAND static bool is_unchanged(const struct map *map) {
  uint64_t now;
  return cs_world_read(map->world, map->field, &now, 8) && now == map->buckets;
}

// The count occupies the place of the first bucket.
CS_ISLAND static bool read_bucket(const struct map *map, uint32_t index, struct bucket *out) {
  const struct cs_layout *l = &map->world->layout;
  uint64_t at = map->buckets + (uint64_t)(index % map->count + 1) * l->bucket.size;
  return cs_world_read(map->world, at + l->bucket.keys, out->key, sizeof out->key) &&
         cs_world_read(map->world, at + l->bucket.values, out->value, sizeof out->value);
}

// Values are stored halved. The bit that this frees says, in a bucket's first value, that a key of
// this bucket is in a later one.
CS_ISLAND static bool probe(const struct map *map, uint64_t key, uint64_t *value) {
  uint64_t mask = map->world->layout.hash_value_mask;
  uint32_t seed = (uint32_t)(key >> 2);
  uint32_t step = 1 + ((uint32_t)(key >> 5) + 1) % (map->count - 1);
  struct bucket bucket;
  *value = 0;
  for (unsigned i = 0; i < map->count && i < MAX_PROBES; i++, seed += step) {
    if (!read_bucket(map, seed, &bucket)) return false;
    for (unsigned slot = 0; slot < MAX_SLOTS; slot++) {
      if (bucket.key[slot] != key) continue;
      *value = (bucket.value[slot] & mask) << 1;
      return true;
    }
    if ((bucket.value[0] & ~mask) == 0) return true;
  }
  return false;
}

// Looks up a key; *value is 0 if the map does not have it. Returns false if the map could not be
// read consistently.
CS_ISLAND static bool look_up(const struct cs_world *world, uint64_t address, uint64_t key,
                              uint64_t *value) {
  struct map map;
  for (unsigned i = 0; i < MAX_TRIES; i++) {
    if (open_map(&map, world, address) && probe(&map, key, value) && is_unchanged(&map))
      return true;
  }
  return false;
}

CS_ISLAND bool cs_method_of_r2r(const struct cs_world *world, uint64_t ip, uint64_t *function_id,
                                uint64_t *start) {
  struct cs_r2r_table table;
  uint32_t index;
  if (!cs_r2r_table_of(world, ip, &table) || !cs_r2r_index_of(world, &table, ip, &index))
    return false;
  for (unsigned i = 0; i < MAX_BACK; i++, index--) {
    if (!cs_r2r_begin(world, &table, index, start) ||
        !look_up(world, table.entry_points, *start, function_id))
      return false;
    if (*function_id != 0) return true;
    if (index == 0) return false;
  }
  return false;
}

CS_ISLAND uint32_t cs_method_some_of_r2r(const struct cs_world *world, uint64_t ip,
                                         uint64_t *entry_points, uint32_t capacity) {
  struct cs_r2r_table table;
  struct map map;
  struct bucket bucket;
  uint32_t n = 0;
  if (!cs_r2r_table_of(world, ip, &table) || !open_map(&map, world, table.entry_points)) return 0;
  for (uint32_t i = 0; i < map.count && n < capacity && read_bucket(&map, i, &bucket); i++)
    for (unsigned slot = 0; slot < MAX_SLOTS && n < capacity; slot++)
      if (bucket.key[slot] >= FIRST_REAL_KEY) entry_points[n++] = bucket.key[slot];
  return n;
}

// The descriptor of .NET 10 does not say that the header's first word points to the debug info, but
// it does say where the words around it are.
CS_ISLAND bool cs_method_debug_info(const struct cs_world *world, uint64_t start,
                                    uint64_t *function_id, uint64_t *info) {
  enum { INFO, METHOD_DESC = 3, WORDS };
  const struct cs_layout *l = &world->layout;
  uint64_t header, words[WORDS];
  if (l->runtime_major != CS_SUPPORTED_RUNTIME || l->code_header.gc_info != 16 ||
      l->code_header.method_desc != METHOD_DESC * sizeof words[0] ||
      !cs_world_read(world, start - 8, &header, 8) || header <= l->stub_code_block_last ||
      !cs_world_read(world, header, words, sizeof words))
    return false;
  *function_id = words[METHOD_DESC];
  *info = words[INFO];
  return *info != 0;
}

typedef bool read_memory(const struct cs_mem *mem, uint64_t addr, void *dst, size_t len);

CS_ISLAND static inline __attribute__((always_inline)) bool read_method(
    const struct cs_world *world, read_memory *read, uint64_t function_id,
    struct cs_method *method) {
  const struct cs_mem *mem = &world->mem;
  enum { CLASS = 7, GENERIC = 5, DYNAMIC = 7, RID_BITS = 24, METHOD_DEF = 0x06000000 };
  const struct cs_layout *l = &world->layout;
  uint8_t desc[CS_METHOD_DESC_BYTES];
  uint64_t bits = l->token_remainder_bits;
  uint16_t range;
  if (l->method_desc.size > sizeof desc || bits == 0 || bits >= 16 || (function_id & 7) != 0 ||
      !read(mem, function_id, desc, l->method_desc.size))
    return false;
  uint16_t flags = (uint16_t)(desc[l->method_desc.flags] | desc[l->method_desc.flags + 1] << 8);
  uint32_t low =
      (uint32_t)(desc[l->method_desc.remainder] | desc[l->method_desc.remainder + 1] << 8);
  *method = (struct cs_method){.dynamic = (flags & CLASS) == DYNAMIC,
                               .generic = (flags & CLASS) == GENERIC};
  if (method->dynamic) return true;
  uint64_t chunk = function_id - l->method_desc_chunk.size -
                   desc[l->method_desc.chunk_index] * l->method_desc_alignment;
  if (!read(mem, chunk + l->method_desc_chunk.method_table, &method->class, 8) ||
      !read(mem, chunk + l->method_desc_chunk.token_range, &range, 2) ||
      !read(mem, method->class + l->method_table.module, &method->module, 8))
    return false;
  uint32_t high = range & ((1u << (RID_BITS - bits)) - 1);
  method->token = METHOD_DEF | high << bits | (low & ((1u << bits) - 1));
  return true;
}

CS_ISLAND bool cs_method_read(const struct cs_world *world, uint64_t function_id,
                              struct cs_method *method) {
  return read_method(world, cs_mem_read_guarded, function_id, method);
}

CS_ISLAND bool cs_method_read_permanent(const struct cs_world *world, uint64_t function_id,
                                        struct cs_method *method) {
  return read_method(world, cs_mem_read, function_id, method);
}
