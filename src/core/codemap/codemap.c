// SPDX-License-Identifier: MIT
// Dispatches an ip to the kind of code that it is in. Signal-safe: yes.
#include "codemap/codemap.h"

#include "codemap/jit.h"
#include "codemap/r2r.h"
#include "images/images.h"

CS_ISLAND static void clear(struct cs_code *code) {
  *code = (struct cs_code){.kind = CS_CODE_NONE};
}

// Finds what `ip` is in, within its range section.
CS_ISLAND static enum cs_stop find_in_range(const struct cs_world *world,
                                            const struct cs_range *range, uint64_t ip,
                                            struct cs_code *code) {
  enum cs_stop stop = CS_STOP_NONE;
  clear(code);
  code->collectible = range->reader.guarded;
  if (range->r2r_module != 0)
    stop = cs_r2r_find(world, range, ip, code);
  else if (range->flags & CS_RANGE_INTERPRETER)
    stop = CS_STOP_INTERPRETED;
  else if ((range->flags & CS_RANGE_CODE_HEAP) && range->heap != 0)
    stop = cs_jit_find(world, range, ip, code);
  else if (range->flags & CS_RANGE_RANGE_LIST)  // precode and dispatch stubs, without a map
    code->kind = CS_CODE_STUB;
  if (stop == CS_STOP_UNREADABLE && code->collectible && !world->mem.guard_works)
    return CS_STOP_NO_GUARD;
  return stop;
}

CS_ISLAND enum cs_stop cs_codemap_find_managed_near(const struct cs_world *world, uint64_t ip,
                                                    struct cs_near *near, struct cs_code *code) {
  struct cs_range range;
  clear(code);
  if (world->layout.code_range_map == 0) return CS_STOP_NONE;  // no runtime: native walks only
  enum cs_stop stop = cs_range_find(world, ip, near, &range);
  if (stop != CS_STOP_NONE || !range.found) return stop;
  if (near != NULL && !range.reader.guarded) {
    near->begin = range.begin;
    near->end = range.end;
    near->r2r_module = range.r2r_module;
    near->heap = range.heap;
    near->flags = range.flags;
  }
  return find_in_range(world, &range, ip, code);
}

CS_ISLAND enum cs_stop cs_codemap_find_managed(const struct cs_world *world, uint64_t ip,
                                               struct cs_code *code) {
  return cs_codemap_find_managed_near(world, ip, NULL, code);
}

CS_ISLAND enum cs_stop cs_codemap_find_near(const struct cs_world *world, uint64_t ip,
                                            struct cs_near *near, struct cs_code *code) {
  const struct cs_images *images = cs_load_acquire(&world->images);
  struct cs_range range;
  if (ip >= near->begin && ip < near->end) {
    range = (struct cs_range){near->begin, near->end, near->r2r_module,          near->heap,
                              near->flags, true,      {&world->mem, false, near}};
    return find_in_range(world, &range, ip, code);
  }
  if (images != NULL && cs_images_find(images, ip) != NULL) return cs_codemap_find(world, ip, code);
  return cs_codemap_find_managed_near(world, ip, near, code);
}

CS_ISLAND enum cs_stop cs_codemap_find(const struct cs_world *world, uint64_t ip,
                                       struct cs_code *code) {
  // Native images come first: a search among a few dozen of them touches one or two cache lines,
  // while the managed map takes at least seven dependent loads. No managed code lies inside an ELF
  // image (before .NET 11).
  const struct cs_images *images = cs_load_acquire(&world->images);
  const struct cs_image *image = images != NULL ? cs_images_find(images, ip) : NULL;
  if (image == NULL) return cs_codemap_find_managed(world, ip, code);
  clear(code);
  code->kind = CS_CODE_NATIVE;
  code->image = image;
  code->begin = image->begin;
  code->end = image->end;
  return CS_STOP_NONE;
}

CS_ISLAND bool cs_image_is_runtime(const struct cs_world *world, const struct cs_image *image) {
  return image->begin >= world->layout.coreclr_begin && image->end <= world->layout.coreclr_end;
}
