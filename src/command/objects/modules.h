// SPDX-License-Identifier: MIT
// The managed modules of another process. Their metadata and the ids of their PDBs come from the
// process's memory, so their files may have been replaced or deleted. One thread.
#pragma once

#include "metadata/lines.h"
#include "metadata/metadata.h"
#include "remote/remote.h"

struct cs_heap_modules;

// `remote` must live longer.
struct cs_heap_modules *cs_heap_modules_new(struct cs_remote *remote);
void cs_heap_modules_free(struct cs_heap_modules *modules);

// Returns the number of a module, by the address of the runtime's Module; numbers count from 0.
// Reads the module's path and headers when the address is new, so the process must be stopped,
// unless the module is never unloaded.
uint32_t cs_heap_modules_number(struct cs_heap_modules *modules, uint64_t address);
const struct cs_world *cs_heap_modules_world(const struct cs_heap_modules *modules);
uint32_t cs_heap_modules_count(const struct cs_heap_modules *modules);

// The functions below may be called while the process runs: an image that has been unloaded since,
// or replaced by another one, is not read.

// The module's metadata, which is read on first use. Returns NULL if it is unreadable.
const struct cs_metadata *cs_heap_modules_metadata(struct cs_heap_modules *modules,
                                                   uint32_t number);
// The path of the module's file. A module of a single-file program has none, nor has one that was
// loaded from memory: the name in their metadata is returned instead. Returns NULL if there is
// neither.
const char *cs_heap_modules_path(struct cs_heap_modules *modules, uint32_t number);
// "Namespace.Type", of a row of TypeDef. Returns false if it cannot be read.
bool cs_heap_modules_type_name(struct cs_heap_modules *modules, uint32_t number, uint32_t row,
                               char *text, size_t cap);
// Adds the module to `lines`, unless an earlier call has. A module without a path is left out.
void cs_heap_modules_add_lines(struct cs_heap_modules *modules, uint32_t number,
                               struct cs_lines *lines);

// The module's image, which is read through `pe`.
struct cs_heap_image {
  struct cs_remote *remote;
  uint64_t base;
  struct cs_pe pe;
};
// Returns false if the image cannot be read.
bool cs_heap_modules_image(const struct cs_heap_modules *modules, uint32_t number,
                           struct cs_heap_image *image);
