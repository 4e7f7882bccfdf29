// SPDX-License-Identifier: MIT
// The core library's objects in another process. Metadata says which row a name has; the module's
// table, which MethodTable a type has; and the class's list of FieldDescs, where a field is.
// Invariant: a field counts only if it has the kind that the caller expects, and a class's statics
// only if they name the class, because their layout is in no descriptor. One thread. Signal-safe:
// no.
#include "objects/heap.h"

#include "objects/objects.h"
#include "util/map.h"

enum {
  MAX_CHAIN = 1 << 16,  // chunks of a module's table
  MAX_KNOWN = 64,
};

struct known {
  uint64_t class;
  const char *field;
  enum cs_heap_kind kind;
  uint32_t offset;
};

struct type {
  const char *space, *name;
  uint32_t row;
};

struct cs_heap {
  const struct cs_world *world;
  struct cs_heap_modules *modules;
  uint64_t core;  // the core library's module
  const struct cs_metadata *metadata;
  struct known known[MAX_KNOWN];
  size_t known_count;
  struct type types[MAX_KNOWN];
  size_t type_count;
};

bool cs_heap_read(const struct cs_heap *heap, uint64_t at, void *out, size_t size) {
  return cs_world_read(heap->world, at, out, size);
}

static bool word(const struct cs_heap *heap, uint64_t at, uint64_t *out) {
  return cs_heap_read(heap, at, out, sizeof *out);
}

struct cs_heap *cs_heap_new(struct cs_heap_modules *modules, struct cs_error *err) {
  const struct cs_world *world = cs_heap_modules_world(modules);
  uint64_t core = cs_objects_known(world) ? cs_heap_class_core_module(world) : 0;
  const struct cs_metadata *metadata =
      core != 0 ? cs_heap_modules_metadata(modules, cs_heap_modules_number(modules, core)) : NULL;
  if (metadata == NULL) {
    (void)cs_error_set(err, cs_objects_known(world)
                                ? "the core library's metadata cannot be read"
                                : "the runtime does not describe its classes as .NET 9 and 10 do");
    return NULL;
  }
  struct cs_heap *heap = cs_allocate(sizeof *heap);
  heap->world = world;
  heap->modules = modules;
  heap->core = core;
  heap->metadata = metadata;
  return heap;
}

void cs_heap_free(struct cs_heap *heap) {
  free(heap);
}

// ---- Classes ----

// A class of the core library by its row; 0: it is not loaded. Returns false if that is unknown.
static bool class_of_row(struct cs_heap *heap, uint32_t row, uint64_t *class) {
  const struct cs_layout *l = &heap->world->layout;
  uint64_t map = heap->core + l->module.types, table;
  uint32_t count;
  for (int i = 0; i < MAX_CHAIN && map != 0; i++) {
    if (!cs_heap_read(heap, map + l->lookup_map.count, &count, sizeof count) ||
        !word(heap, map + l->lookup_map.table, &table))
      return false;
    if (row < count) {
      if (!word(heap, table + 8ull * row, class)) return false;
      *class &= ~7ull;
      return true;
    }
    row -= count;
    if (!word(heap, map + l->lookup_map.next, &map)) return false;
  }
  *class = 0;
  return map == 0;
}

static uint32_t row_of_name(struct cs_heap *heap, const char *space, const char *name) {
  for (size_t i = 0; i < heap->type_count; i++)
    if (heap->types[i].space == space && heap->types[i].name == name) return heap->types[i].row;
  uint32_t row = cs_metadata_find_type(heap->metadata, space, name);
  if (row != 0 && heap->type_count < MAX_KNOWN)
    heap->types[heap->type_count++] = (struct type){space, name, row};
  return row;
}

// A class of the core library.
static bool read_class(const struct cs_heap *heap, uint64_t id, struct cs_heap_class *class) {
  return cs_heap_class_read(heap->world, id, class) && class->module == heap->core;
}

bool cs_heap_class_is(struct cs_heap *heap, uint64_t class, const char *space, const char *type) {
  struct cs_heap_class found;
  uint32_t row = row_of_name(heap, space, type);
  return row != 0 && read_class(heap, class, &found) && found.row == row;
}

bool cs_heap_is(struct cs_heap *heap, uint64_t object, const char *space, const char *type) {
  return cs_heap_class_is(heap, cs_object_class(heap->world, object), space, type);
}

// ---- Fields ----

static bool find_field(struct cs_heap *heap, uint64_t id, const char *name,
                       enum cs_heap_place place, enum cs_heap_kind kind, uint32_t *offset) {
  enum { MOST_OFFSET = 1 << 20 };
  struct cs_heap_class class;
  struct cs_heap_class_field field;
  if (!read_class(heap, id, &class) || !cs_heap_class_field(heap->modules, &class, name, &field) ||
      field.place != place || field.kind != kind || field.offset >= MOST_OFFSET)
    return false;
  *offset = field.offset;
  return true;
}

static bool find_known(struct cs_heap *heap, uint64_t class, const char *name,
                       enum cs_heap_kind kind, uint32_t *offset) {
  for (size_t i = 0; i < heap->known_count; i++) {
    const struct known *k = &heap->known[i];
    if (k->class != class || k->field != name || k->kind != kind) continue;
    *offset = k->offset;
    return true;
  }
  if (!find_field(heap, class, name, CS_HEAP_IN_OBJECT, kind, offset)) return false;
  if (heap->known_count < MAX_KNOWN)
    heap->known[heap->known_count++] = (struct known){class, name, kind, *offset};
  return true;
}

bool cs_heap_field(struct cs_heap *heap, uint64_t object, const char *field, enum cs_heap_kind kind,
                   uint64_t *at) {
  uint32_t offset;
  if (!find_known(heap, cs_object_class(heap->world, object), field, kind, &offset)) return false;
  *at = object + CS_HEAP_HEADER + offset;
  return true;
}

bool cs_heap_get(struct cs_heap *heap, uint64_t object, const char *field, enum cs_heap_kind kind,
                 void *out) {
  static const uint8_t sizes[] = {
      [CS_HEAP_BOOLEAN] = 1, [CS_HEAP_I2] = 2, [CS_HEAP_I4] = 4,     [CS_HEAP_U4] = 4,
      [CS_HEAP_I8] = 8,      [CS_HEAP_U8] = 8, [CS_HEAP_OBJECT] = 8,
  };
  uint64_t at;
  return cs_heap_field(heap, object, field, kind, &at) && cs_heap_read(heap, at, out, sizes[kind]);
}

bool cs_heap_struct_field(struct cs_heap *heap, uint64_t at, const char *space, const char *type,
                          const char *field, enum cs_heap_kind kind, uint64_t *out) {
  uint64_t class;
  uint32_t offset, row = row_of_name(heap, space, type);
  if (row == 0 || !class_of_row(heap, row, &class) || class == 0 ||
      !find_known(heap, class, field, kind, &offset))
    return false;
  *out = at + offset;
  return true;
}

// The lowest bit of the pointer to a class's statics is set until the class has been initialized.
enum cs_heap_static cs_heap_static(struct cs_heap *heap, const char *space, const char *type,
                                   const char *field, uint64_t *object) {
  const struct cs_layout *l = &heap->world->layout;
  uint64_t class, auxiliary, named, base;
  uint32_t offset, row = row_of_name(heap, space, type);
  if (row == 0 || !class_of_row(heap, row, &class)) return CS_HEAP_UNKNOWN;
  if (class == 0) return CS_HEAP_UNUSED;
  if (!find_field(heap, class, field, CS_HEAP_STATIC, CS_HEAP_OBJECT, &offset) ||
      !word(heap, class + l->method_table.auxiliary, &auxiliary) ||
      !word(heap, auxiliary - 8, &named) || named != class ||
      !word(heap, auxiliary - l->statics.size + l->statics.gc, &base))
    return CS_HEAP_UNKNOWN;
  if (base == 0 || (base & 1) != 0) return CS_HEAP_UNUSED;
  if (!word(heap, base + offset, object)) return CS_HEAP_UNKNOWN;
  return *object != 0 ? CS_HEAP_FOUND : CS_HEAP_UNUSED;
}

bool cs_heap_array(struct cs_heap *heap, uint64_t array, uint64_t *at, uint32_t *count) {
  const struct cs_layout *l = &heap->world->layout;
  *at = array + l->array.size;
  return array % 8 == 0 && cs_heap_read(heap, array + l->array.count, count, sizeof *count) &&
         *count < 1 << 24;
}
