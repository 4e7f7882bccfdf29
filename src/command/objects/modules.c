// SPDX-License-Identifier: MIT
// The table of managed modules. Invariant: metadata is that of the image which was there when the
// module was added: its time stamp and size are compared before the metadata is read. One thread.
// Signal-safe: no.
#include "objects/modules.h"

#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "objects/text.h"
#include "util/map.h"

enum { LARGE = 64 << 10 };

struct module {
  uint64_t base;  // of its image
  char *path;     // NULL: it has none
  bool known;     // its image could be read; otherwise the next two mean nothing
  uint32_t stamp, size;
  struct cs_pe_debug debug;
  bool asked, has_lines;         // its metadata was read; it was added to the lines
  struct cs_metadata *metadata;  // NULL: unreadable
};

struct cs_heap_modules {
  struct cs_remote *remote;
  struct module *items;
  size_t count, capacity;
  struct cs_map by_address;
};

struct cs_heap_modules *cs_heap_modules_new(struct cs_remote *remote) {
  struct cs_heap_modules *modules = cs_allocate(sizeof *modules);
  modules->remote = remote;
  return modules;
}

void cs_heap_modules_free(struct cs_heap_modules *modules) {
  if (modules == NULL) return;
  for (size_t i = 0; i < modules->count; i++) {
    free(modules->items[i].path);
    cs_metadata_free(modules->items[i].metadata);
  }
  free(modules->items);
  cs_map_free(&modules->by_address);
  free(modules);
}

static bool read_image(void *from, uint64_t offset, void *out, size_t size) {
  const struct cs_heap_image *image = from;
  uint64_t at = image->base + offset;
  return size >= LARGE ? cs_remote_read_large(image->remote, at, out, size)
                       : cs_remote_read(image->remote, at, out, size);
}

static bool open_image(struct cs_remote *remote, uint64_t base, struct cs_heap_image *image) {
  image->remote = remote;
  image->base = base;
  return base != 0 && cs_pe_open_loaded(&image->pe, read_image, image);
}

static void read_module(struct cs_remote *remote, uint64_t address, struct module *m) {
  const struct cs_world *world = cs_remote_world(remote);
  struct cs_heap_image image;
  uint64_t path;
  if (world->layout.module.path != CS_NO_FIELD &&
      cs_remote_read(remote, address + world->layout.module.path, &path, sizeof path))
    m->path = cs_object_utf16(world, path);
  if (!cs_remote_read(remote, address + world->layout.module.base, &m->base, sizeof m->base) ||
      !open_image(remote, m->base, &image))
    return;
  (void)cs_pe_read_debug(&image.pe, &m->debug);
  m->stamp = image.pe.stamp;
  m->size = image.pe.image_size;
  m->known = true;
}

uint32_t cs_heap_modules_number(struct cs_heap_modules *modules, uint64_t address) {
  bool added;
  uint32_t number = cs_map_put(&modules->by_address, address, (uint32_t)modules->count, &added);
  if (!added) return number;
  CS_APPEND(modules->items, modules->count, modules->capacity, (struct module){.base = 0});
  read_module(modules->remote, address, &modules->items[number]);
  return number;
}

const struct cs_world *cs_heap_modules_world(const struct cs_heap_modules *modules) {
  return cs_remote_world(modules->remote);
}

uint32_t cs_heap_modules_count(const struct cs_heap_modules *modules) {
  return (uint32_t)modules->count;
}

bool cs_heap_modules_image(const struct cs_heap_modules *modules, uint32_t number,
                           struct cs_heap_image *image) {
  const struct module *m = &modules->items[number];
  return m->known && open_image(modules->remote, m->base, image) && image->pe.stamp == m->stamp &&
         image->pe.image_size == m->size;
}

const struct cs_metadata *cs_heap_modules_metadata(struct cs_heap_modules *modules,
                                                   uint32_t number) {
  struct module *m = &modules->items[number];
  struct cs_heap_image image;
  if (!m->asked && cs_heap_modules_image(modules, number, &image))
    m->metadata = cs_metadata_read(&image.pe);
  m->asked = true;
  return m->metadata;
}

const char *cs_heap_modules_path(struct cs_heap_modules *modules, uint32_t number) {
  struct module *m = &modules->items[number];
  const struct cs_metadata *metadata =
      m->path == NULL ? cs_heap_modules_metadata(modules, number) : NULL;
  const char *name = metadata != NULL ? cs_metadata_module_name(metadata) : NULL;
  if (name != NULL) m->path = strdup(cs_file_of(name));
  return m->path;
}

bool cs_heap_modules_type_name(struct cs_heap_modules *modules, uint32_t number, uint32_t row,
                               char *text, size_t cap) {
  static struct cs_method_text type;
  const struct cs_metadata *metadata = cs_heap_modules_metadata(modules, number);
  if (metadata == NULL || !cs_metadata_type(metadata, row, NULL, &type)) return false;
  (void)snprintf(text, cap, "%s%s%s", type.space, type.space[0] != '\0' ? "." : "", type.type);
  return true;
}

void cs_heap_modules_add_lines(struct cs_heap_modules *modules, uint32_t number,
                               struct cs_lines *lines) {
  struct module *m = &modules->items[number];
  if (m->has_lines) return;
  m->has_lines = true;
  struct cs_lines_module of = {.path = cs_heap_modules_path(modules, number),
                               .pdb = m->debug.path,
                               .known = m->known,
                               .has_id = m->debug.has_id,
                               .embedded = m->debug.embedded_size != 0};
  memcpy(of.id, m->debug.id, sizeof of.id);
  if (of.path != NULL) cs_lines_add(lines, &of);
}
