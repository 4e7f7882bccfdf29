// SPDX-License-Identifier: MIT
// Finds a method's debug info: for a jitted method through its code header, for a ReadyToRun method
// in a section of its image, by the index of its function. Invariant: whatever is read may be wrong
// or gone; then nothing is returned. One thread. Signal-safe: no.
#include "remote/il.h"

#include <stdlib.h>

#include "base/nibbles.h"
#include "codemap/method.h"
#include "codemap/r2r.h"
#include "contract/supported.h"

// ---- Jitted code ----
enum {
  FLAG_PATCHPOINTS = 1,  // a tier-0 method with loops: where its locals are
  FLAG_RICH = 2,         // with DOTNET_RichDebugInfo=1
  PATCHPOINTS_LOCALS = 16,
  PATCHPOINTS_BYTES = 40,  // and 4 for each local
  MAX_HEAD = 24,           // four numbers
  MAX_BOUNDS = 1 << 20,
};

// The header before the map itself.
static bool skip_extras(const struct cs_world *world, uint64_t *at) {
  uint8_t flags;
  uint32_t n;
  if (!cs_world_read(world, *at, &flags, 1) || (flags & ~(FLAG_PATCHPOINTS | FLAG_RICH)) != 0)
    return false;
  *at += 1;
  if ((flags & FLAG_PATCHPOINTS) != 0) {
    if (!cs_world_read(world, *at + PATCHPOINTS_LOCALS, &n, 4) || n > MAX_BOUNDS) return false;
    *at += PATCHPOINTS_BYTES + n * UINT64_C(4);
  }
  if ((flags & FLAG_RICH) != 0) {
    if (!cs_world_read(world, *at, &n, 4)) return false;
    *at += 4 + (uint64_t)n;
  }
  return true;
}

// ---- ReadyToRun images: docs/design/coreclr/botr/readytorun-format.md of dotnet/runtime ----
enum {
  SECTION_DEBUG_INFO = 105,
  MAX_SECTIONS = 64,
  BLOCK = 16,  // of an array's index
};

struct image {
  const struct cs_world *world;
  uint64_t base;
};

// A number of 1 to 5 bytes; the low bits of the first say how many.
static bool image_number(const struct image *image, uint32_t *at, uint32_t *out) {
  uint8_t b[5];
  unsigned extra = 0;
  if (!cs_world_read(image->world, image->base + *at, b, 1)) return false;
  while (extra < 4 && (b[0] >> extra & 1) != 0) extra++;
  if (extra == 4 && (b[0] & 0x10) != 0) return false;
  if (extra > 0 && !cs_world_read(image->world, image->base + *at + 1, b + 1, extra)) return false;
  uint32_t value = extra == 4 ? 0 : (uint32_t)b[0] >> (extra + 1);
  for (unsigned i = 0; i < extra; i++)
    value |= (uint32_t)b[i + 1] << (extra == 4 ? i * 8 : 7 - extra + i * 8);
  *at += 1 + extra;
  *out = value;
  return true;
}

// A sparse array: blocks of 16, each a binary tree whose leaves are the elements.
static bool image_element(const struct image *image, uint32_t array, uint32_t index, uint32_t *at) {
  uint32_t head, node = 0, next;
  if (!image_number(image, &array, &head) || index >= head >> 2) return false;
  uint32_t width = (head & 3) == 0 ? 1 : (head & 3) == 1 ? 2 : 4;
  uint64_t entry = image->base + array + (uint64_t)width * (index / BLOCK);
  if (!cs_world_read(image->world, entry, &node, width)) return false;
  node += array;
  for (uint32_t bit = BLOCK / 2; bit > 0; bit /= 2) {
    uint32_t value;
    next = node;
    if (!image_number(image, &next, &value)) return false;
    if ((index & bit) != 0 && (value & 2) != 0) {
      node += value >> 2;
    } else if ((index & bit) == 0 && (value & 1) != 0) {
      node = next;
    } else if ((value & 3) == 0 && value >> 2 == index % BLOCK) {
      node = next;  // the only element of this part of the tree
      break;
    } else {
      return false;
    }
  }
  *at = node;
  return true;
}

// The image's own table of sections; for a component of a composite image, that image's table.
static bool debug_info_section(const struct cs_world *world, const struct cs_r2r_table *table,
                               uint32_t *rva) {
  struct {
    uint32_t signature;
    uint16_t major, minor;
    uint32_t flags, sections;
  } head;
  struct {
    uint32_t type, rva, size;
  } section;
  const struct cs_layout *l = &world->layout;
  uint64_t info = table->entry_points - l->r2r_info.entry_points, header;
  if (!cs_world_read(world, info + l->r2r_info.header, &header, 8) ||
      !cs_world_read(world, header, &head, sizeof head) || head.signature != 0x00525452 ||
      head.major != CS_SUPPORTED_R2R || head.sections > MAX_SECTIONS)
    return false;
  for (uint32_t i = 0; i < head.sections; i++) {
    uint64_t at = header + sizeof head + i * sizeof section;
    if (!cs_world_read(world, at, &section, sizeof section)) return false;
    *rva = section.rva;
    if (section.type == SECTION_DEBUG_INFO) return section.rva != 0;
  }
  return false;
}

static bool debug_info_of_r2r(const struct cs_world *world, uint64_t method, uint64_t *info) {
  struct cs_r2r_table table;
  uint32_t index, section, at, back;
  uint64_t begin;
  if (!cs_r2r_table_of(world, method, &table) || !cs_r2r_index_of(world, &table, method, &index) ||
      !cs_r2r_begin(world, &table, index, &begin) || begin != method ||
      !debug_info_section(world, &table, &section))
    return false;
  const struct image image = {world, table.range.begin};
  if (!image_element(&image, section, index, &at)) return false;
  // Methods with the same debug info share it; the number is then the distance back to it.
  uint32_t element = at;
  if (!image_number(&image, &at, &back)) return false;
  *info = image.base + (back != 0 ? element - back : at);
  return true;
}

// ---- Both ----

// Finds the map: [*at, *at + *size).
static bool find_bounds(const struct cs_world *world, uint64_t *at, uint32_t *size) {
  enum { INSTRUMENTED = 0xFFFFFFFF };
  uint8_t head[MAX_HEAD];
  size_t got = cs_world_read(world, *at, head, sizeof head) ? sizeof head : 0;
  while (got < sizeof head && cs_world_read(world, *at + got, head + got, 1)) got++;
  struct cs_nibbles n = {head, got, 0};
  uint32_t instrumented = 0, variables;
  if (!cs_nibbles_u32(&n, size)) return false;
  // If a profiler has changed the method's IL and provided a map of that, there are two maps. The
  // second one is of the IL that was compiled, which symbols describe.
  bool two = *size == INSTRUMENTED;
  if (two && (!cs_nibbles_u32(&n, &instrumented) || !cs_nibbles_u32(&n, size))) return false;
  if (!cs_nibbles_u32(&n, &variables)) return false;
  *at += (n.next + 1) / 2 + instrumented;
  return *size > 0 && *size <= MAX_BOUNDS;
}

bool cs_il_find(const struct cs_world *world, enum cs_code_kind kind, uint64_t method, uint64_t at,
                uint32_t *il) {
  uint64_t info, function;
  uint32_t size;
  if (at < method || at - method > UINT32_MAX) return false;
  if (kind == CS_CODE_JIT) {
    if (!cs_method_debug_info(world, method, &function, &info) || !skip_extras(world, &info))
      return false;
  } else if (kind != CS_CODE_R2R || !debug_info_of_r2r(world, method, &info)) {
    return false;
  }
  if (!find_bounds(world, &info, &size)) return false;
  uint8_t *bounds = malloc(size);
  bool found = bounds != NULL && cs_world_read(world, info, bounds, size) &&
               cs_il_of_bounds(bounds, size, (uint32_t)(at - method), il);
  free(bounds);
  return found;
}
