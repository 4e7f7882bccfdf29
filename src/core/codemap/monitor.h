// SPDX-License-Identifier: MIT
// monitor: the locks of objects in the runtime, by the offsets that the runtime describes. Where
// something does not fit, the result is "unknown". A collection moves objects, so what is read of
// an object is meaningful only if no collection moves it meanwhile. Signal-safe: yes.
#pragma once

#include "codemap/codemap.h"

// Returns the object's MethodTable, or 0 if it is unreadable.
CS_ISLAND uint64_t cs_object_class(const struct cs_world *world, uint64_t object);

enum { CS_MONITOR_OWNER = 16 };  // offset of the owner's OS id (64 bits) in the monitor
struct cs_object_monitor {
  uint64_t object;  // 0: unknown (a collection is moving it)
  bool locked;
  // The owner's ids: the OS's, in the process's PID namespace, and the runtime's (Thread.Id). 0:
  // the lock is just being taken or released, or (the OS's id only) the owner had ended before any
  // thread waited.
  uint64_t owner_os_id;
  uint32_t owner;
};
// `monitor` is the address of a sync block's lock. Returns false if there is none.
CS_ISLAND bool cs_object_monitor(const struct cs_world *world, uint64_t monitor,
                                 struct cs_object_monitor *out);
