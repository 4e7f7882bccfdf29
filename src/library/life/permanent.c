// SPDX-License-Identifier: MIT
// Looks for permanent code in the executable mappings of this process. Signal-safe: no.
#include "life/permanent.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefix.h"
#include "native/maps.h"

// The tables of the code map lie on few pages and are read for each page of code, so pages are
// cached while a list is made.
enum { PAGE = 4096, PAGES = 16 };
struct reading {
  struct cs_world world;
  struct cs_process_memory process;
  struct cs_permanent *list;
  uint64_t at[PAGES];  // 0: none
  uint8_t bytes[PAGES][PAGE];
};
_Static_assert(offsetof(struct reading, world.mem) == 0, "read_pages casts one to the other");

static const uint8_t *page_at(struct reading *r, uint64_t page) {
  size_t i = page / PAGE % PAGES;
  if (r->at[i] != page && !cs_process_memory_read(&r->process, page, r->bytes[i], PAGE)) {
    r->at[i] = 0;
    return NULL;
  }
  r->at[i] = page;
  return r->bytes[i];
}

static bool read_pages(const struct cs_mem *mem, uint64_t addr, void *dst, size_t len) {
  struct reading *r = (struct reading *)(uintptr_t)mem;
  uint8_t *to = dst;
  while (len > 0) {
    size_t offset = addr % PAGE, part = len < PAGE - offset ? len : PAGE - offset;
    const uint8_t *bytes = page_at(r, addr - offset);
    if (bytes == NULL) return false;
    memcpy(to, bytes + offset, part);
    to += part, addr += part, len -= part;
  }
  return true;
}

static bool add_mapping(const struct cs_mapping *mapping, void *arg) {
  struct reading *r = arg;
  if (mapping->executable && !cs_has_prefix(mapping->path, "[v"))
    cs_permanent_add(&r->world, mapping->begin, mapping->end, r->list);
  return true;
}

void cs_permanent_code(const struct cs_layout *layout, struct cs_permanent *list) {
  struct cs_maps maps = {0};
  struct cs_error err;
  list->starts = list->modules = 0;
  struct reading *r = calloc(1, sizeof *r);
  if (r == NULL) return;
  r->world.mem.read = read_pages;
  r->world.layout = *layout;
  r->list = list;
  cs_process_memory_init(&r->process, 0);
  (void)cs_maps_each(&maps, 0, add_mapping, r, &err);
  cs_process_memory_close(&r->process);
  cs_maps_free(&maps);
  free(r);
}
