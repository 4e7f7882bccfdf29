// SPDX-License-Identifier: MIT
// Types of another process's objects, and what its threads wait for. Invariant: a layout that no
// descriptor has counts only where it agrees with one that is described, or with metadata: a
// thread's own data must name the thread. One thread. Signal-safe: no.
#include "objects/objects.h"

#include "contract/supported.h"
#include "objects/classes.h"

static bool get_word(const struct cs_world *world, uint64_t at, uint64_t *out) {
  return cs_world_read(world, at, out, sizeof *out);
}

bool cs_objects_known(const struct cs_world *world) {
  const struct cs_layout *l = &world->layout;
  const struct cs_object_layout *o = &l->objects;
  const uint32_t needed[] = {
      o->flags,
      o->base_size,
      o->element,
      o->sync_size,
      o->sync_block,
      l->method_table.canonical,
      l->method_table.parent,
      l->method_table.flags2,
      l->method_table.auxiliary,
      l->ee_class.fields,
      l->ee_class.method_table,
      l->ee_class.field_count,
      l->ee_class.static_count,
      l->statics.size,
      l->statics.gc,
      l->module.types,
      l->lookup_map.table,
      l->lookup_map.next,
      l->lookup_map.count,
      l->array.size,
      l->array.count,
  };
  for (size_t i = 0; i < CS_COUNT(needed); i++)
    if (needed[i] == CS_NO_FIELD) return false;
  return cs_objects_are_measured(l->runtime_major) && l->sync_table != 0 &&
         l->free_object_class != 0 && l->landmarks.object_class != 0;
}

// ---- Types ----

bool cs_object_type(const struct cs_world *world, uint64_t id, struct cs_object_type *type) {
  enum {  // of MTFlags: the RuntimeTypeSystem contract
    CATEGORY = 0x000C0000,
    ARRAY = 0x00080000,
    VECTOR = 0x00020000,
    VECTOR_BYTES = 24,  // of an array with one dimension and no bounds
  };
  struct cs_heap_class class;
  *type = (struct cs_object_type){.module = 0};
  if (!cs_objects_known(world) || !cs_heap_class_read(world, id, &class)) return false;
  while ((class.flags & CATEGORY) == ARRAY) {
    if (type->ranks == CS_OBJECT_RANKS || class.base_bytes < VECTOR_BYTES) return false;
    bool vector = (class.flags & VECTOR) != 0;
    type->rank[type->ranks++] = vector ? 1 : (uint8_t)((class.base_bytes - VECTOR_BYTES) / 8);
    if (!get_word(world, class.id + world->layout.objects.element, &id) ||
        !cs_heap_class_read(world, id, &class))
      return false;
  }
  type->row = class.row;
  type->module = class.module;
  return type->row != 0 && type->module != 0;
}

// ---- Waits ----

// ThreadLocalData has its Thread before, and the first ThreadBlockingInfo after InFlightData.
bool cs_object_blocking(const struct cs_world *world, uint64_t clr_thread, uint64_t *at) {
  const struct cs_object_layout *o = &world->layout.objects;
  struct {
    uint64_t thread, in_flight, first;
  } words;
  uint64_t data;
  if (clr_thread == 0 || !cs_objects_known(world) || o->thread_data == CS_NO_FIELD ||
      o->in_flight == CS_NO_FIELD || !get_word(world, clr_thread + o->thread_data, &data) ||
      data == 0 ||
      !cs_world_read(world, data + o->in_flight - sizeof words.thread, &words, sizeof words) ||
      words.thread != clr_thread)
    return false;
  *at = words.first;
  return true;
}
