// SPDX-License-Identifier: MIT
// method: finds the method of a place in ReadyToRun code, and reads MethodDescs, from the runtime's
// own structures: FunctionIDs without a call into the CLR. Signal-safe: yes. Reads are guarded,
// since an id may be the result of a wrong read, except where the caller knows better.
#pragma once

#include "codemap/codemap.h"

struct cs_method {
  uint64_t class;   // MethodTable; for shared code the canonical one
  uint64_t module;  // ModuleID
  uint32_t token;   // mdMethodDef
  bool dynamic;     // a dynamic method or an IL stub, without metadata: only this is set
  bool generic;     // it has generic arguments of its own
};
// Returns false if it cannot be read.
CS_ISLAND bool cs_method_read(const struct cs_world *world, uint64_t function_id,
                              struct cs_method *method);
// The same by plain loads, about 100 times as fast, for a method whose code is never unloaded, in a
// runtime that cs_method_read is known to read correctly.
CS_ISLAND bool cs_method_read_permanent(const struct cs_world *world, uint64_t function_id,
                                        struct cs_method *method);

// Finds the method of the jitted code that starts at `start`, and the address of its debug info.
// Returns false if there is none, or if the code header is not as expected.
CS_ISLAND bool cs_method_debug_info(const struct cs_world *world, uint64_t start,
                                    uint64_t *function_id, uint64_t *info);

// Finds the method of the ReadyToRun code at `ip` (of a funclet, its parent), and the start of its
// main body. Returns false if it is unknown.
CS_ISLAND bool cs_method_of_r2r(const struct cs_world *world, uint64_t ip, uint64_t *function_id,
                                uint64_t *start);

// Copies up to `capacity` entry points from the map of the image that contains `ip`, to be compared
// with the profiling API. Returns their number.
CS_ISLAND uint32_t cs_method_some_of_r2r(const struct cs_world *world, uint64_t ip,
                                         uint64_t *entry_points, uint32_t capacity);
