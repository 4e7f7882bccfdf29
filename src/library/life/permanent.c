// SPDX-License-Identifier: MIT
// Looks for permanent code in the executable mappings of this process. Signal-safe: no.
#include "life/permanent.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/guarded.h"

// The tables of the code map lie on few pages and are read for each page of code, so pages are kept
// while a list is made.
enum { PAGE = 4096, PAGES = 16 };
struct reading {
  struct cs_world world;
  uint64_t at[PAGES];  // 0: none
  uint8_t bytes[PAGES][PAGE];
};
_Static_assert(offsetof(struct reading, world.mem) == 0, "read_pages gets from one to the other");

static const uint8_t *page_at(struct reading *r, uint64_t page) {
  size_t i = page / PAGE % PAGES;
  if (r->at[i] != page && !cs_guarded_read(page, r->bytes[i], PAGE)) {
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

// Returns whether this line of /proc/self/maps is a mapping that may have managed code.
static bool parse(const char *line, uint64_t *begin, uint64_t *end) {
  char rights[8];
  return sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", begin, end, rights) == 3 &&
         strchr(rights, 'x') != NULL && strstr(line, "[v") == NULL;
}

void cs_permanent_code(const struct cs_layout *layout, struct cs_permanent *list) {
  uint64_t begin, end;
  char *line = NULL;
  size_t capacity = 0;
  list->starts = list->modules = 0;
  struct reading *r = calloc(1, sizeof *r);
  FILE *maps = fopen("/proc/self/maps", "re");
  if (r != NULL && maps != NULL) {
    r->world.mem.read = read_pages;
    r->world.layout = *layout;
    while (getline(&line, &capacity, maps) > 0)
      if (parse(line, &begin, &end)) cs_permanent_add(&r->world, begin, end, list);
  }
  free(line);
  free(r);
  if (maps != NULL) (void)fclose(maps);
}
