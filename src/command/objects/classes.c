// SPDX-License-Identifier: MIT
// Classes and fields. Invariant: the form of a FieldDesc is in no descriptor, so one counts only if
// it names the class whose list it is in. One thread. Signal-safe: no.
#include "objects/classes.h"

#include <string.h>

enum { MOST_BASES = 64 };

static bool find_description(const struct cs_world *world, struct cs_heap_class *class) {
  enum { IS_CLASS = 1 };  // lowest bit: it is the canonical MethodTable's address
  const struct cs_layout *l = &world->layout;
  uint64_t at, back;
  class->canonical = class->id;
  if (!cs_world_read(world, class->id + l->method_table.canonical, &at, sizeof at)) return false;
  if ((at & IS_CLASS) != 0) {
    class->canonical = at - IS_CLASS;
    if (!cs_world_read(world, class->canonical + l->method_table.canonical, &at, sizeof at))
      return false;
  }
  if (!cs_world_read(world, at + l->ee_class.method_table, &back, sizeof back) ||
      back != class->canonical)
    return false;
  class->description = at;
  return true;
}

// The class of what is between objects has no description.
static bool is_free_space(const struct cs_world *world, uint64_t id) {
  uint64_t class;
  return cs_world_read(world, world->layout.free_object_class, &class, sizeof class) && class == id;
}

bool cs_heap_class_read(const struct cs_world *world, uint64_t id, struct cs_heap_class *out) {
  enum { ROW_AT = 8 };
  const struct cs_layout *l = &world->layout;
  uint32_t flags2;
  *out = (struct cs_heap_class){.id = id};
  if (id == 0 || id % 8 != 0 || !cs_world_read(world, id + l->objects.flags, &out->flags, 4) ||
      !cs_world_read(world, id + l->objects.base_size, &out->base_bytes, 4) ||
      !cs_world_read(world, id + l->method_table.flags2, &flags2, sizeof flags2) ||
      !cs_world_read(world, id + l->method_table.parent, &out->parent, 8) ||
      !cs_world_read(world, id + l->method_table.module, &out->module, 8))
    return false;
  out->row = flags2 >> ROW_AT;
  return find_description(world, out) || is_free_space(world, id);
}

bool cs_heap_class_is_generic(const struct cs_heap_class *class) {
  // Of a class whose objects have elements, such as a string, these bits are the elements' size.
  enum { GENERIC = 0x30 };
  const uint32_t has_elements = 0x80000000;
  return (class->flags & has_elements) == 0 && (class->flags & GENERIC) != 0;
}

uint32_t cs_heap_class_arguments(const struct cs_world *world, uint64_t id,
                                 uint64_t arguments[CS_HEAP_MOST_ARGUMENTS]) {
  const struct cs_layout *l = &world->layout;
  uint64_t instance, dictionary;
  uint16_t dictionaries, count;
  if (l->generics.dictionaries == CS_NO_FIELD || l->generics.arguments == CS_NO_FIELD ||
      !cs_world_read(world, id + l->objects.element, &instance, sizeof instance) || instance == 0 ||
      !cs_world_read(world, instance - 8 + l->generics.dictionaries, &dictionaries,
                     sizeof dictionaries) ||
      !cs_world_read(world, instance - 8 + l->generics.arguments, &count, sizeof count) ||
      dictionaries == 0 || count == 0 || count > CS_HEAP_MOST_ARGUMENTS ||
      !cs_world_read(world, instance + 8ull * (dictionaries - 1u), &dictionary,
                     sizeof dictionary) ||
      !cs_world_read(world, dictionary, arguments, 8ull * count))
    return 0;
  return count;
}

uint64_t cs_heap_class_core_module(const struct cs_world *world) {
  struct cs_heap_class object;
  uint64_t id;
  return cs_world_read(world, world->layout.landmarks.object_class, &id, sizeof id) &&
                 cs_heap_class_read(world, id, &object)
             ? object.module
             : 0;
}

// ---- Fields ----

static bool count_fields(const struct cs_world *world, const struct cs_heap_class *class,
                         uint16_t *instance, uint16_t *of_class) {
  const struct cs_layout *l = &world->layout;
  return class->description != 0 &&
         cs_world_read(world, class->description + l->ee_class.field_count, instance,
                       sizeof *instance) &&
         cs_world_read(world, class->description + l->ee_class.static_count, of_class,
                       sizeof *of_class);
}

struct field_desc {
  uint64_t class;  // the canonical one
  uint32_t row_flags, offset_kind;
};

static struct cs_heap_class_field field_of(const struct field_desc *desc) {
  enum {
    ROW = 0xFFFFFF,
    STATIC = 1 << 24,
    OF_THREAD = 1 << 25,
    IN_IMAGE = 1 << 26,
    OFFSET = 0x7FFFFFF,
    KIND_AT = 27
  };
  uint32_t place = desc->row_flags & (STATIC | OF_THREAD | IN_IMAGE);
  return (struct cs_heap_class_field){.row = desc->row_flags & ROW,
                                      .offset = desc->offset_kind & OFFSET,
                                      .kind = (enum cs_heap_kind)(desc->offset_kind >> KIND_AT),
                                      .place = place == 0        ? CS_HEAP_IN_OBJECT
                                               : place == STATIC ? CS_HEAP_STATIC
                                                                 : CS_HEAP_ELSEWHERE};
}

// Fields of objects come first in the list. The parent's count has those of its bases.
bool cs_heap_class_fields(const struct cs_world *world, const struct cs_heap_class *class,
                          struct cs_heap_class_fields *out) {
  static struct field_desc descs[CS_HEAP_MOST_FIELDS];
  struct cs_heap_class parent;
  uint16_t instance, of_class, inherited = 0, ignored;
  uint64_t list;
  out->count = 0;
  if (!count_fields(world, class, &instance, &of_class) ||
      (class->parent != 0 && (!cs_heap_class_read(world, class->parent, &parent) ||
                              !count_fields(world, &parent, &inherited, &ignored))) ||
      inherited > instance ||
      !cs_world_read(world, class->description + world->layout.ee_class.fields, &list, sizeof list))
    return false;
  uint32_t count = (uint32_t)(instance - inherited) + of_class;
  if (count > CS_HEAP_MOST_FIELDS ||
      (count > 0 && !cs_world_read(world, list, descs, count * sizeof *descs)))
    return false;
  for (uint32_t i = 0; i < count; i++) {
    if (descs[i].class != class->canonical) return false;
    out->item[i] = field_of(&descs[i]);
  }
  out->count = count;
  return true;
}

bool cs_heap_class_field(struct cs_heap_modules *modules, const struct cs_heap_class *class,
                         const char *name, struct cs_heap_class_field *out) {
  static struct cs_heap_class_fields fields;
  const struct cs_metadata *metadata =
      cs_heap_modules_metadata(modules, cs_heap_modules_number(modules, class->module));
  uint32_t row = metadata != NULL ? cs_metadata_find_field(metadata, class->row, name) : 0;
  if (row == 0 || !cs_heap_class_fields(cs_heap_modules_world(modules), class, &fields))
    return false;
  for (uint32_t i = 0; i < fields.count; i++) {
    if (fields.item[i].row != row) continue;
    *out = fields.item[i];
    return true;
  }
  return false;
}

bool cs_heap_class_member(struct cs_heap_modules *modules, const struct cs_heap_class *class,
                          const char *name, uint32_t *offset) {
  const struct cs_world *world = cs_heap_modules_world(modules);
  struct cs_heap_class at = *class;
  struct cs_heap_class_field field;
  for (int i = 0; i < MOST_BASES; i++) {
    if (cs_heap_class_field(modules, &at, name, &field) && field.place == CS_HEAP_IN_OBJECT) {
      *offset = field.offset + CS_HEAP_HEADER;
      return true;
    }
    if (at.parent == 0 || !cs_heap_class_read(world, at.parent, &at)) return false;
  }
  return false;
}
