// SPDX-License-Identifier: MIT
// Objects of another process and their types, by the offsets that the runtime describes, and the
// locks that objects have in the runtime. Nothing is guessed: where something does not fit, the
// result is "unknown". A collection moves objects, so their contents mean something only while the
// process is stopped and none is in progress. Not for handlers.
#pragma once

#include "codemap/monitor.h"

// Returns whether the runtime describes everything that this component needs: classes.h, heap.h and
// this header are of use only then.
bool cs_objects_known(const struct cs_world *world);

// ---- Types ----
enum { CS_OBJECT_RANKS = 4 };
struct cs_object_type {
  uint64_t module;
  uint32_t row;  // of TypeDef, of the innermost element type of an array
  unsigned ranks;
  uint8_t rank[CS_OBJECT_RANKS];  // of the array, of its elements, ...: int[][,] has 1, 2
};
bool cs_object_type(const struct cs_world *world, uint64_t class, struct cs_object_type *type);

// ---- Waits ----
// What the thread waits for: the address of the youngest ThreadBlockingInfo of it, which is on its
// stack; 0: it waits for no lock. Returns false if that is unknown.
bool cs_object_blocking(const struct cs_world *world, uint64_t clr_thread, uint64_t *at);
