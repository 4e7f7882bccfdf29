// SPDX-License-Identifier: MIT
// Hash table and string pool. Invariant: at most 3/4 of the slots are used, so a probe always ends;
// string ids are dense and stable, pointers into the pool are valid until the next cs_strings_add.
// One thread. Signal-safe: no.
#include "util/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/print.h"

// Half a table is of no use; the recorded program continues by itself.
static void out_of_memory(size_t bytes) {
  cs_print(
      stderr,
      "clrsnap: out of memory (%zu bytes wanted; ulimit -v?): what a .clrsnap file has is kept, "
      "and nothing else\n",
      bytes);
  exit(1);
}

void *cs_allocate(size_t bytes) {
  void *p = calloc(1, bytes > 0 ? bytes : 1);
  if (p == NULL) out_of_memory(bytes);
  return p;
}

void *cs_grow(void *items, size_t count, size_t *capacity, size_t item_bytes) {
  void *moved = cs_grow_or_not(items, count, capacity, item_bytes);
  if (moved == NULL) out_of_memory(2 * *capacity * item_bytes);
  return moved;
}

static struct cs_map_slot *probe(const struct cs_map *map, uint64_t key) {
  size_t i = cs_hash_spread(key) & (map->capacity - 1);
  while (map->slots[i].used && map->slots[i].key != key) i = (i + 1) & (map->capacity - 1);
  return &map->slots[i];
}

static void rehash(struct cs_map *map) {
  struct cs_map old = *map;
  map->capacity = old.capacity == 0 ? 64 : old.capacity * 2;
  map->slots = cs_allocate(map->capacity * sizeof *map->slots);
  for (size_t i = 0; i < old.capacity; i++) {
    if (old.slots[i].used) *probe(map, old.slots[i].key) = old.slots[i];
  }
  free(old.slots);
}

uint32_t cs_map_put(struct cs_map *map, uint64_t key, uint32_t fresh, bool *added) {
  if (map->count * 4 >= map->capacity * 3) rehash(map);
  struct cs_map_slot *slot = probe(map, key);
  *added = !slot->used;
  if (*added) {
    *slot = (struct cs_map_slot){key, fresh, 1};
    map->count++;
  }
  return slot->value;
}

bool cs_map_get(const struct cs_map *map, uint64_t key, uint32_t *value) {
  if (map->capacity == 0) return false;
  const struct cs_map_slot *slot = probe(map, key);
  if (slot->used) *value = slot->value;
  return slot->used;
}

void cs_map_free(struct cs_map *map) {
  free(map->slots);
  memset(map, 0, sizeof *map);
}

static uint32_t append(struct cs_strings *s, const char *data, size_t len) {
  CS_RESERVE(s->bytes, s->used + len + 1, s->room);
  s->items = cs_grow(s->items, s->count, &s->capacity, sizeof *s->items);
  s->items[s->count] = (struct cs_string){s->used, len, UINT32_MAX};
  if (len > 0) memcpy(s->bytes + s->used, data, len);
  s->bytes[s->used + len] = '\0';
  s->used += len + 1;
  return (uint32_t)s->count++;
}

uint32_t cs_strings_add(struct cs_strings *s, const char *data, size_t len) {
  bool added;
  uint32_t id = cs_map_put(&s->by_hash, cs_hash_bytes(data, len), (uint32_t)s->count, &added);
  if (added) return append(s, data, len);
  for (;;) {
    const struct cs_string *item = &s->items[id];
    if (item->len == len && (len == 0 || memcmp(s->bytes + item->offset, data, len) == 0))
      return id;
    if (item->next == UINT32_MAX) break;
    id = item->next;
  }
  uint32_t fresh = append(s, data, len);
  s->items[id].next = fresh;
  return fresh;
}

uint32_t cs_strings_add_plain(struct cs_strings *s, const char *data, size_t len) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (out != NULL) cs_put_plain(out, data, len);
  if (out == NULL || fclose(out) != 0) out_of_memory(len);
  uint32_t id = cs_strings_add(s, text, size);
  free(text);
  return id;
}

char **cs_strings_table(const struct cs_strings *s) {
  char **table = cs_allocate(s->count * sizeof *table);
  for (size_t i = 0; i < s->count; i++) table[i] = s->bytes + s->items[i].offset;
  return table;
}

const char *cs_strings_get(const struct cs_strings *s, uint32_t id, size_t *len) {
  if (len != NULL) *len = s->items[id].len;
  return s->bytes + s->items[id].offset;
}

void cs_strings_free(struct cs_strings *s) {
  free(s->bytes);
  free(s->items);
  cs_map_free(&s->by_hash);
  memset(s, 0, sizeof *s);
}
