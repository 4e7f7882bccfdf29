// SPDX-License-Identifier: MIT
// The managed modules of a process, with their metadata, from its memory: what has become of their
// files does not matter. Invariant: its readers (pe/, metadata/) check whatever is read.
// One thread. Signal-safe: no.
#include <string.h>

#include "async/classes.h"
#include "base/path.h"
#include "remote/objects.h"

enum { LARGE = 64 << 10 };

static bool read_image(void *from, uint64_t offset, void *out, size_t size) {
  const struct cs_async_image *image = from;
  uint64_t at = image->base + offset;
  return size >= LARGE ? cs_remote_read_large(image->remote, at, out, size)
                       : cs_remote_read(image->remote, at, out, size);
}

static char *read_path(struct cs_remote *remote, uint64_t module) {
  const struct cs_world *world = cs_remote_world(remote);
  uint64_t at;
  if (world->layout.module.path == CS_NO_FIELD ||
      !cs_remote_read(remote, module + world->layout.module.path, &at, 8))
    return NULL;
  return cs_object_utf16(world, at);
}

bool cs_async_module_image(const struct cs_async_modules *modules, uint32_t index,
                           struct cs_async_image *image) {
  image->remote = modules->remote;
  image->base = modules->items[index].base;
  return image->base != 0 && cs_pe_open_loaded(&image->pe, read_image, image);
}

// A module of a single-file program has no path, nor has one that was loaded from memory.
static void read_module(struct cs_async_modules *modules, uint32_t index) {
  struct cs_async_module *m = &modules->items[index];
  struct cs_async_image image;
  m->asked = true;
  m->path = read_path(modules->remote, m->address);
  if (!cs_async_module_image(modules, index, &image)) return;
  m->known = true;
  (void)cs_pe_read_debug(&image.pe, &m->debug);
  m->metadata = cs_metadata_read(&image.pe);
  const char *name =
      m->metadata != NULL && m->path == NULL ? cs_metadata_module_name(m->metadata) : NULL;
  if (name != NULL) m->path = strdup(cs_file_of(name));
}

struct cs_async_module *cs_async_module_at(struct cs_async_modules *modules, uint32_t index) {
  if (!modules->items[index].asked) read_module(modules, index);
  return &modules->items[index];
}

uint32_t cs_async_module_find(struct cs_async_modules *modules, uint64_t address) {
  const struct cs_layout *l = &cs_remote_world(modules->remote)->layout;
  struct cs_async_module module = {.address = address};
  for (size_t i = 0; i < modules->count; i++)
    if (modules->items[i].address == address) return (uint32_t)i;
  (void)cs_remote_read(modules->remote, address + l->module.base, &module.base, 8);
  modules->items =
      cs_grow(modules->items, modules->count, &modules->capacity, sizeof *modules->items);
  modules->items[modules->count] = module;
  return (uint32_t)modules->count++;
}

void cs_async_modules_free(struct cs_async_modules *modules) {
  for (size_t i = 0; i < modules->count; i++) {
    free(modules->items[i].path);
    cs_metadata_free(modules->items[i].metadata);
  }
  free(modules->items);
}
