// SPDX-License-Identifier: MIT
// Finds jitted code in a process's executable mappings, by looking up one address after the other
// in the runtime's map of code, and ReadyToRun methods in the runtime's map of their entry points.
// The process runs meanwhile, so everything is read twice, and code that differs between the two
// reads, because it was just compiled or unloaded, is left out. Invariant: a piece has the name
// that both reads have found. One thread. Signal-safe: no.
#include "stack/perfmap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "codemap/method.h"
#include "codemap/range.h"
#include "native/maps.h"
#include "stack/outside.h"
#include "util/map.h"

enum {
  PAGE = 4096,
  CODE_ALIGN = 16,         // of jitted methods
  MOST_ENTRIES = 1 << 19,  // of a ReadyToRun image, even a composite one
};

struct area {
  uint64_t begin, end;
};

struct piece {
  struct cs_code code;
  char *name;  // NULL: it is not used
};

struct cs_perfmap {
  struct cs_remote *remote;
  struct cs_outside_names *names;
  struct piece *pieces;
  size_t count, capacity;
  struct cs_perfmap_counts counts;
};

struct areas {
  struct area *items;
  size_t count, capacity;
  bool double_mapped;
};

static bool add_area(const struct cs_mapping *mapping, void *arg) {
  struct areas *areas = arg;
  if (!mapping->executable) return true;
  CS_APPEND(areas->items, areas->count, areas->capacity,
            (struct area){mapping->begin, mapping->end});
  areas->double_mapped |= strstr(mapping->path, "/memfd:doublemapper") != NULL;
  return true;
}

static bool find(const struct cs_perfmap *map, uint64_t ip, struct cs_code *code) {
  const struct cs_world *world = cs_remote_world(map->remote);
  if (cs_codemap_find_managed(world, ip, code) != CS_STOP_NONE) code->kind = CS_CODE_NONE;
  return cs_code_is_managed(code) && ip >= code->begin && ip < code->end;
}

static void add(struct cs_perfmap *map, const struct cs_code *code) {
  CS_APPEND(map->pieces, map->count, map->capacity, (struct piece){*code, NULL});
}

// The methods of a ReadyToRun image that the runtime has prepared to run: it keeps the names of no
// others.
static void add_image(struct cs_perfmap *map, uint64_t ip) {
  uint64_t *entries = cs_allocate(MOST_ENTRIES * sizeof *entries);
  uint32_t count = cs_method_some_of_r2r(cs_remote_world(map->remote), ip, entries, MOST_ENTRIES);
  for (uint32_t i = 0; i < count; i++) {
    struct cs_code code;
    if (find(map, entries[i], &code) && code.kind == CS_CODE_R2R && code.begin == entries[i])
      add(map, &code);
  }
  free(entries);
}

static void scan(struct cs_perfmap *map, struct area area) {
  const struct cs_world *world = cs_remote_world(map->remote);
  for (uint64_t ip = area.begin; ip < area.end;) {
    struct cs_range range = {.found = false};
    if (ip % PAGE == 0) (void)cs_range_find(world, ip, NULL, &range);
    if (ip % PAGE == 0 && (!range.found || range.r2r_module != 0)) {
      if (range.found) add_image(map, ip);
      ip = range.found && range.end > ip ? (range.end + PAGE - 1) / PAGE * PAGE : ip + PAGE;
      continue;
    }
    struct cs_code code;
    if (find(map, ip, &code) && code.kind == CS_CODE_JIT) {
      add(map, &code);
      ip = code.end;
    } else {
      ip = (ip | (CODE_ALIGN - 1)) + 1;
    }
  }
}

// The components of a composite image have one table of methods.
static int by_begin(const void *a, const void *b) {
  const struct piece *x = a, *y = b;
  return CS_ORDER(x->code.begin, y->code.begin);
}

static void sort(struct cs_perfmap *map) {
  size_t kept = 0;
  cs_sort(map->pieces, map->count, sizeof *map->pieces, by_begin);
  for (size_t i = 0; i < map->count; i++)
    if (kept == 0 || map->pieces[kept - 1].code.begin != map->pieces[i].code.begin)
      map->pieces[kept++] = map->pieces[i];
  map->count = kept;
}

static bool is_same(const struct cs_code *a, const struct cs_code *b) {
  return a->kind == b->kind && a->begin == b->begin && a->end == b->end &&
         a->method_start == b->method_start && a->function_id == b->function_id;
}

static void name_piece(struct cs_perfmap *map, struct piece *piece) {
  struct cs_frame frame = {.code = piece->code, .flags = CS_FRAME_EXACT};
  struct cs_outside_frame out = {.kind = piece->code.kind, .flags = CS_FRAME_EXACT};
  frame.regs.r[CS_IP] = piece->code.begin;
  cs_outside_identify(map->names, &frame, &out);
  cs_outside_name(map->names, &out);
  free(out.module);
  piece->name = out.name;
}

static void drop(struct piece *piece) {
  free(piece->name);
  piece->name = NULL;
}

// The second read.
static void confirm(struct cs_perfmap *map) {
  cs_remote_invalidate(map->remote);
  for (size_t i = 0; i < map->count; i++) {
    struct piece *piece = &map->pieces[i], again = {.name = NULL};
    if (!find(map, piece->code.begin, &again.code) || !is_same(&piece->code, &again.code)) {
      drop(piece);
      continue;
    }
    name_piece(map, &again);
    bool known = strcmp(piece->name, "[unknown method]") != 0;
    bool same = strcmp(piece->name, again.name) == 0;
    drop(&again);
    if (!same || !known) {
      drop(piece);
      continue;
    }
    if (piece->code.kind == CS_CODE_JIT)
      map->counts.jitted += !piece->code.funclet;
    else
      map->counts.precompiled++;
  }
}

struct cs_perfmap *cs_perfmap_read(int pid, bool raw_names, struct cs_error *err) {
  struct cs_perfmap *map = cs_allocate(sizeof *map);
  map->remote = cs_remote_open(pid, err);
  if (map->remote == NULL) {
    cs_perfmap_free(map);
    return NULL;
  }
  struct areas areas = {.items = NULL};
  struct cs_maps maps = {.text = NULL};
  (void)cs_maps_each(&maps, pid, add_area, &areas, err);
  cs_maps_free(&maps);
  map->counts.double_mapped = areas.double_mapped;
  struct cs_target *target = cs_target_of(pid);
  struct cs_heap_modules *modules = cs_heap_modules_new(map->remote);
  map->names = cs_outside_names_new(modules, target, raw_names);
  for (size_t i = 0; i < areas.count; i++) scan(map, areas.items[i]);
  sort(map);
  for (size_t i = 0; i < map->count; i++) name_piece(map, &map->pieces[i]);
  confirm(map);
  cs_outside_names_free(map->names);
  cs_heap_modules_free(modules);
  cs_target_free(target);
  free(areas.items);
  if (map->counts.jitted + map->counts.precompiled > 0) return map;
  cs_perfmap_free(map);
  (void)cs_error_set(err, "no managed code is found in process %d", pid);
  return NULL;
}

const struct cs_perfmap_counts *cs_perfmap_counts(const struct cs_perfmap *map) {
  return &map->counts;
}

bool cs_perfmap_write(const struct cs_perfmap *map, FILE *out) {
  for (size_t i = 0; i < map->count; i++) {
    const struct piece *piece = &map->pieces[i];
    if (piece->name == NULL) continue;
    cs_print(out, "%" PRIx64 " %" PRIx64 " %s%s\n", piece->code.begin,
             piece->code.end - piece->code.begin, piece->name,
             piece->code.funclet ? " (handler)" : "");
  }
  return fflush(out) == 0 && !ferror(out);
}

void cs_perfmap_free(struct cs_perfmap *map) {
  if (map == NULL) return;
  for (size_t i = 0; i < map->count; i++) free(map->pieces[i].name);
  free(map->pieces);
  cs_remote_close(map->remote);
  free(map);
}
