// SPDX-License-Identifier: MIT
// method: which method a place in ReadyToRun code belongs to, and what a MethodDesc says of itself,
// read from the runtime's own structures: FunctionIDs without a call into the CLR. Signal-safe:
// yes. Everything is read guarded, since an id may come from memory that is not what it seems.
#ifndef CS_CODEMAP_METHOD_H
#define CS_CODEMAP_METHOD_H

#include "codemap/codemap.h"

struct cs_method {
  uint64_t class;   // its MethodTable; of shared code the canonical one
  uint64_t module;  // ModuleID
  uint32_t token;   // mdMethodDef
  bool dynamic;     // has no metadata: a dynamic method or an IL stub; all else means nothing
};
// False: it cannot be read.
CS_ISLAND bool cs_method_read(const struct cs_world *world, uint64_t function_id,
                              struct cs_method *method);

// Of jitted code that begins at `start`: whose it is, and where its debug info lies. False: there
// is none, or the code header is not as it is known to be.
CS_ISLAND bool cs_method_debug_info(const struct cs_world *world, uint64_t start,
                                    uint64_t *function_id, uint64_t *info);

// The method that the ReadyToRun code at `ip` belongs to (a funclet's is its parent's), and where
// its main body starts. False: not known.
CS_ISLAND bool cs_method_of_r2r(const struct cs_world *world, uint64_t ip, uint64_t *function_id,
                                uint64_t *start);

// Up to `capacity` entry points that the map of the image around `ip` has, for whoever holds them
// against the profiling API. Answers how many.
CS_ISLAND uint32_t cs_method_some_of_r2r(const struct cs_world *world, uint64_t ip,
                                         uint64_t *entry_points, uint32_t capacity);

#endif
