// SPDX-License-Identifier: MIT
// Objects of another process and their types, by the offsets that the runtime describes, and the
// locks that objects have in the runtime. Nothing is guessed: where something does not fit, the
// result is "unknown". What a type is called is in metadata, which this room does not read. A
// collection moves objects, so their contents mean something only while the process is stopped and
// none is in progress. Not for handlers.
#ifndef CS_REMOTE_OBJECTS_H
#define CS_REMOTE_OBJECTS_H

#include "codemap/codemap.h"

enum { CS_OBJECT_UNITS = 1024 };  // of UTF-16, with the NUL, that a text may have
// The UTF-16 text that ends with a NUL at `address`, as UTF-8; the caller frees it. NULL: it is
// empty, too long or unreadable.
char *cs_object_utf16(const struct cs_world *world, uint64_t address);

// Whether the runtime describes all that is needed; otherwise the functions below return nothing.
bool cs_objects_known(const struct cs_world *world);

// ---- Types ----
// The object's MethodTable; 0: unreadable.
uint64_t cs_object_class(const struct cs_world *world, uint64_t object);

enum { CS_OBJECT_RANKS = 4 };
struct cs_object_type {
  uint64_t module;
  uint32_t row;  // of TypeDef, of the innermost element type of an array
  unsigned ranks;
  uint8_t rank[CS_OBJECT_RANKS];  // of the array, of its elements, ...: int[][,] has 1, 2
};
bool cs_object_type(const struct cs_world *world, uint64_t class, struct cs_object_type *type);

// ---- Monitors ----
// What the thread waits for: the address of the youngest ThreadBlockingInfo of it, which is on its
// stack; 0: it waits for no lock. False: unknown.
bool cs_object_blocking(const struct cs_world *world, uint64_t clr_thread, uint64_t *at);

struct cs_object_monitor {
  uint64_t object;  // 0: unknown (a collection moves it at this moment)
  bool locked;
  // The owner's ids: the OS's, in the process's PID namespace, and the runtime's (Thread.Id). 0: it
  // is just being taken or released, or (the OS's only) the owner had ended before anyone waited.
  uint64_t owner_os_id;
  uint32_t owner;
};
// `monitor` is the address of a sync block's lock. False: there is none.
bool cs_object_monitor(const struct cs_world *world, uint64_t monitor,
                       struct cs_object_monitor *out);

#endif
