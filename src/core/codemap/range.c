// SPDX-License-Identifier: MIT
// The range-section map: five levels of 256 pointers over address bits 56 to 17, then a short list
// of fragments for each 128 KiB chunk (dotnet/runtime
// docs/design/datacontracts/ExecutionManager.md). Invariant: below the first pointer with the
// "collectible" mark (bit 0), every read is guarded, because the runtime itself needs a lock there.
// Signal-safe: yes.
#include "codemap/range.h"

enum {
  LEVELS = 5,
  LEVEL_BITS = 8,
  CHUNK_BITS = 17,
  MAX_FRAGMENTS = 4096,  // the most code ranges of a chunk: 128 KiB / 32 bytes
};
#define COLLECTIBLE_BIT 1ull

// Removes the mark from a pointer, and records it.
CS_ISLAND static uint64_t unmark(struct cs_reader *reader, uint64_t pointer) {
  if (pointer & COLLECTIBLE_BIT) reader->guarded = true;
  return pointer & ~COLLECTIBLE_BIT;
}

CS_ISLAND static enum cs_stop unreadable(const struct cs_reader *reader) {
  return reader->guarded && !reader->mem->guard_works ? CS_STOP_NO_GUARD : CS_STOP_UNREADABLE;
}

// Finds the first fragment of the chunk that contains `ip`, or 0.
CS_ISLAND static bool first_fragment(const struct cs_world *world, uint64_t ip,
                                     struct cs_reader *reader, uint64_t *fragment) {
  uint64_t table = world->layout.code_range_map + world->layout.range_section_map.top_level_data;
  for (int level = LEVELS - 1; level >= 0; level--) {
    uint64_t index = (ip >> (CHUNK_BITS + LEVEL_BITS * level)) & ((1u << LEVEL_BITS) - 1);
    uint64_t entry;
    if (!cs_get_u64(reader, table + index * 8, &entry)) return false;
    table = unmark(reader, entry);
    if (table == 0) break;
  }
  *fragment = table;
  return true;
}

// The headers of interpreted code have no unwind entries. Its range is marked, or belongs to a
// manager of its own.
CS_ISLAND static bool is_interpreted(const struct cs_layout *layout, const struct cs_range *range,
                                     uint64_t manager) {
  uint64_t of_jit;
  if (range->r2r_module != 0 || (range->flags & CS_RANGE_CODE_HEAP) == 0) return false;
  if ((range->flags & CS_RANGE_INTERPRETER) != 0) return true;
  return layout->jit_manager != 0 && cs_mem_u64(range->reader.mem, layout->jit_manager, &of_jit) &&
         of_jit != 0 && of_jit != manager;
}

// The heap of interpreted code is left 0, so that no code header in it is read.
CS_ISLAND static bool read_section(const struct cs_layout *layout, uint64_t section,
                                   struct cs_range *range) {
  struct cs_members m;
  uint64_t manager;
  uint32_t end = cs_max_u32(
      cs_max_u32(cs_max_u32(layout->range_section.range_end_open, layout->range_section.r2r_module),
                 layout->range_section.jit_manager),
      cs_max_u32(cs_max_u32(layout->range_section.heap_list, layout->range_section.flags),
                 layout->range_section.range_begin));
  if (!cs_members_open(&m, &range->reader, section, end + 8) ||
      !cs_member_u32(&m, layout->range_section.flags, &range->flags) ||
      !cs_member_u64(&m, layout->range_section.range_begin, &range->begin) ||
      !cs_member_u64(&m, layout->range_section.range_end_open, &range->end) ||
      !cs_member_u64(&m, layout->range_section.r2r_module, &range->r2r_module) ||
      !cs_member_u64(&m, layout->range_section.heap_list, &range->heap) ||
      !cs_member_u64(&m, layout->range_section.jit_manager, &manager))
    return false;
  if (is_interpreted(layout, range, manager)) {
    range->flags |= CS_RANGE_INTERPRETER;
    range->heap = 0;
  }
  return true;
}

struct fragment {
  uint64_t begin, end, next, section;
};

CS_ISLAND static bool read_fragment(const struct cs_layout *layout, const struct cs_reader *r,
                                    uint64_t at, struct fragment *f) {
  struct cs_members m;
  uint32_t end = cs_max_u32(
      cs_max_u32(layout->range_fragment.range_begin, layout->range_fragment.range_end_open),
      cs_max_u32(layout->range_fragment.next, layout->range_fragment.range_section));
  return cs_members_open(&m, r, at, end + 8) &&
         cs_member_u64(&m, layout->range_fragment.range_begin, &f->begin) &&
         cs_member_u64(&m, layout->range_fragment.range_end_open, &f->end) &&
         cs_member_u64(&m, layout->range_fragment.next, &f->next) &&
         cs_member_u64(&m, layout->range_fragment.range_section, &f->section);
}

CS_ISLAND enum cs_stop cs_range_find(const struct cs_world *world, uint64_t ip,
                                     struct cs_near *near, struct cs_range *range) {
  const struct cs_layout *layout = &world->layout;
  struct cs_reader *r = &range->reader;
  range->found = false;
  r->mem = &world->mem;
  r->guarded = false;
  r->near = near;
  uint64_t fragment;
  if (ip >> 57) return CS_STOP_NONE;
  if (!first_fragment(world, ip, r, &fragment)) return unreadable(r);
  for (int i = 0; fragment != 0 && i < MAX_FRAGMENTS; i++) {
    struct fragment f;
    if (!read_fragment(layout, r, fragment, &f)) return unreadable(r);
    if (ip >= f.begin && ip < f.end) {
      if (!read_section(layout, f.section, range)) return unreadable(r);
      // A section may be marked although no pointer that leads to it is; the stricter one counts.
      if (range->flags & CS_RANGE_COLLECTIBLE) r->guarded = true;
      range->found = true;
      return CS_STOP_NONE;
    }
    fragment = unmark(r, f.next);
  }
  return CS_STOP_NONE;
}
