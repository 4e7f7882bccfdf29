// SPDX-License-Identifier: MIT
// The locks of objects. Invariant: the layout of a lock, which no descriptor has, is trusted only
// where it agrees with what is described: a sync block must be the one at its own index in the sync
// table. All reads are guarded. Any thread. Signal-safe: yes.
#include "codemap/monitor.h"

#include "contract/supported.h"

CS_ISLAND static bool get_word(const struct cs_world *world, uint64_t at, uint64_t *out) {
  return cs_world_read(world, at, out, sizeof *out);
}

CS_ISLAND static bool is_known(const struct cs_layout *l) {
  return cs_objects_are_measured(l->runtime_major) && l->sync_table != 0 &&
         l->objects.sync_size != CS_NO_FIELD && l->objects.sync_block != CS_NO_FIELD;
}

CS_ISLAND uint64_t cs_object_class(const struct cs_world *world, uint64_t object) {
  enum { MARKS = 7 };  // bits that a collection uses
  uint64_t class;
  return object % 8 == 0 && get_word(world, object, &class) ? class & ~(uint64_t)MARKS : 0;
}

// Returns the object that the sync table has for the lock, if the object's header leads back to the
// entry.
CS_ISLAND static uint64_t object_of(const struct cs_world *world, uint64_t entry, uint32_t index) {
  // In the 4 bytes before the object: what they contain, and the index.
  enum { KIND = 0x0C000000, IS_INDEX = 0x08000000, INDEX = 0x03FFFFFF };
  const struct cs_object_layout *o = &world->layout.objects;
  uint64_t object;
  uint32_t header;
  if (!get_word(world, entry + o->sync_block + 8, &object) || object == 0 || object % 8 != 0 ||
      !cs_world_read(world, object - 4, &header, sizeof header) || (header & KIND) != IS_INDEX ||
      (header & INDEX) != index)
    return 0;
  return object;
}

CS_ISLAND bool cs_object_monitor(const struct cs_world *world, uint64_t monitor,
                                 struct cs_object_monitor *out) {
  enum { LOCKED = 1, INDEX = 0x7FFFFFFF };
  const struct cs_object_layout *o = &world->layout.objects;
  struct {  // the beginning of an AwareLock
    uint32_t state, recursion, owner, pad;
    uint64_t owner_os_id;
    uint32_t pinned, index;
  } lock;
  uint64_t table, block;
  *out = (struct cs_object_monitor){.object = 0};
  if (!is_known(&world->layout) || monitor % 8 != 0 ||
      !get_word(world, world->layout.sync_table, &table) ||
      !cs_world_read(world, monitor, &lock, sizeof lock))
    return false;
  uint32_t index = lock.index & INDEX;
  uint64_t entry = table + (uint64_t)index * o->sync_size;
  if (index == 0 || !get_word(world, entry + o->sync_block, &block) || block != monitor)
    return false;
  out->object = object_of(world, entry, index);
  out->locked = (lock.state & LOCKED) != 0;
  out->owner_os_id = lock.owner_os_id;
  out->owner = lock.owner;
  return true;
}
