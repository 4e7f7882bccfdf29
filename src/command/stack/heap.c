// SPDX-License-Identifier: MIT
// The core library's objects in another process. Metadata says which row a name has; the module's
// table, which MethodTable a type has; and the class's list of FieldDescs, where a field is.
// Invariant: a FieldDesc counts only if it names the class that it was reached from and the field's
// own row and kind, and a class's statics only if they name the class; these two layouts are in no
// descriptor. One thread. Signal-safe: no.
#include "stack/heap.h"

#include <stdlib.h>
#include <string.h>

#include "contract/supported.h"
#include "metadata/metadata.h"
#include "pe/pe.h"
#include "util/map.h"

enum {
  OBJECT_MARKS = 7,     // low bits of an object's first word, which a collection uses
  OBJECT_HEADER = 8,    // the fields of a class follow its first word
  MAX_FIELDS = 512,     // of one class
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
  uint64_t module;  // of the core library
  struct cs_metadata *metadata;
  struct known known[MAX_KNOWN];
  size_t known_count;
  struct type types[MAX_KNOWN];
  size_t type_count;
};

bool cs_heap_read(const struct cs_heap *heap, uint64_t at, void *out, size_t size) {
  return at != 0 && cs_mem_read_guarded(&heap->world->mem, at, out, size);
}

static bool word(const struct cs_heap *heap, uint64_t at, uint64_t *out) {
  return cs_heap_read(heap, at, out, sizeof *out);
}

// ---- The core library ----

static bool is_described(const struct cs_layout *l) {
  const uint32_t needed[] = {l->array.size,
                             l->array.count,
                             l->module.types,
                             l->lookup_map.table,
                             l->lookup_map.next,
                             l->lookup_map.count,
                             l->ee_class.fields,
                             l->statics.size,
                             l->statics.gc,
                             l->method_table.flags2,
                             l->method_table.auxiliary,
                             l->method_table.canonical};
  for (size_t i = 0; i < CS_COUNT(needed); i++)
    if (needed[i] == CS_NO_FIELD) return false;
  return l->runtime_major == CS_SUPPORTED_RUNTIME && l->landmarks.object_class != 0;
}

struct image {
  const struct cs_heap *heap;
  uint64_t base;
};

static bool read_image(void *from, uint64_t offset, void *out, size_t size) {
  const struct image *image = from;
  return cs_heap_read(image->heap, image->base + offset, out, size);
}

// System.Object is of the core library.
static bool find_library(struct cs_heap *heap) {
  const struct cs_layout *l = &heap->world->layout;
  struct image image = {heap, 0};
  struct cs_pe pe;
  uint64_t object;
  if (!word(heap, l->landmarks.object_class, &object) || object == 0 ||
      !word(heap, object + l->method_table.module, &heap->module) || heap->module == 0 ||
      !word(heap, heap->module + l->module.base, &image.base) ||
      !cs_pe_open_loaded(&pe, read_image, &image))
    return false;
  heap->metadata = cs_metadata_read(&pe);
  return heap->metadata != NULL;
}

struct cs_heap *cs_heap_new(const struct cs_world *world, struct cs_error *err) {
  struct cs_heap *heap = cs_allocate(sizeof *heap);
  heap->world = world;
  if (!is_described(&world->layout))
    (void)cs_error_set(err, "the runtime does not describe its classes as .NET 10 does");
  else if (!find_library(heap))
    (void)cs_error_set(err, "the core library's metadata cannot be read");
  else
    return heap;
  cs_heap_free(heap);
  return NULL;
}

void cs_heap_free(struct cs_heap *heap) {
  if (heap == NULL) return;
  cs_metadata_free(heap->metadata);
  free(heap);
}

// ---- Classes ----

// A class of the core library by its row; 0: it is not loaded. Returns false if that is unknown.
static bool class_of_row(struct cs_heap *heap, uint32_t row, uint64_t *class) {
  const struct cs_layout *l = &heap->world->layout;
  uint64_t map = heap->module + l->module.types, table;
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

static uint32_t row_of_class(struct cs_heap *heap, uint64_t class) {
  const struct cs_layout *l = &heap->world->layout;
  uint64_t module;
  uint32_t flags;
  if (!word(heap, class + l->method_table.module, &module) || module != heap->module ||
      !cs_heap_read(heap, class + l->method_table.flags2, &flags, sizeof flags))
    return 0;
  return flags >> 8;
}

static bool class_of_object(struct cs_heap *heap, uint64_t object, uint64_t *class) {
  return object % 8 == 0 && word(heap, object, class) && (*class &= ~(uint64_t)OBJECT_MARKS) != 0;
}

bool cs_heap_class_is(struct cs_heap *heap, uint64_t class, const char *space, const char *type) {
  uint32_t row = row_of_name(heap, space, type);
  return row != 0 && row_of_class(heap, class) == row;
}

bool cs_heap_is(struct cs_heap *heap, uint64_t object, const char *space, const char *type) {
  uint64_t class;
  return class_of_object(heap, object, &class) && cs_heap_class_is(heap, class, space, type);
}

// ---- Fields ----

// FieldDesc: the class, then two words: a row of 24 bits and flags, an offset of 27 bits and a kind.
struct field {
  uint64_t class;
  uint32_t row_flags, offset_kind;
};
#define FIELD_STATIC (1u << 24)
#define FIELD_THREAD (1u << 25)  // one for each thread
#define FIELD_RVA (1u << 26)     // in the image

// The class that has the list of fields, which all instantiations over references share.
static bool fields_of(struct cs_heap *heap, uint64_t class, uint64_t *owner, uint64_t *list) {
  const struct cs_layout *l = &heap->world->layout;
  uint64_t canonical;
  *owner = class;
  if (!word(heap, class + l->method_table.canonical, &canonical)) return false;
  if ((canonical & 1) != 0) {
    *owner = canonical & ~1ull;
    if (!word(heap, *owner + l->method_table.canonical, &canonical) || (canonical & 1) != 0)
      return false;
  }
  return word(heap, canonical + l->ee_class.fields, list) && *list != 0;
}

static bool find_field(struct cs_heap *heap, uint64_t class, const char *name, bool is_static,
                       enum cs_heap_kind kind, uint32_t *offset) {
  uint64_t owner, list;
  uint32_t row = cs_metadata_find_field(heap->metadata, row_of_class(heap, class), name);
  struct field field;
  if (row == 0 || !fields_of(heap, class, &owner, &list)) return false;
  for (unsigned i = 0; i < MAX_FIELDS; i++) {
    if (!cs_heap_read(heap, list + i * sizeof field, &field, sizeof field) || field.class != owner)
      return false;
    if ((field.row_flags & 0xFFFFFF) != row) continue;
    *offset = field.offset_kind & 0x7FFFFFF;
    return (field.row_flags & (FIELD_STATIC | FIELD_THREAD | FIELD_RVA)) ==
               (is_static ? FIELD_STATIC : 0) &&
           field.offset_kind >> 27 == (uint32_t)kind && *offset < 1 << 20;
  }
  return false;
}

static bool find_known(struct cs_heap *heap, uint64_t class, const char *name,
                       enum cs_heap_kind kind, uint32_t *offset) {
  for (size_t i = 0; i < heap->known_count; i++) {
    const struct known *k = &heap->known[i];
    if (k->class != class || k->field != name || k->kind != kind) continue;
    *offset = k->offset;
    return true;
  }
  if (!find_field(heap, class, name, false, kind, offset)) return false;
  if (heap->known_count < MAX_KNOWN)
    heap->known[heap->known_count++] = (struct known){class, name, kind, *offset};
  return true;
}

bool cs_heap_field(struct cs_heap *heap, uint64_t object, const char *field, enum cs_heap_kind kind,
                   uint64_t *at) {
  uint64_t class;
  uint32_t offset;
  if (!class_of_object(heap, object, &class) || !find_known(heap, class, field, kind, &offset))
    return false;
  *at = object + OBJECT_HEADER + offset;
  return true;
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
  if (!find_field(heap, class, field, true, CS_HEAP_OBJECT, &offset) ||
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
