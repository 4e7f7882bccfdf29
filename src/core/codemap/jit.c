// SPDX-License-Identifier: MIT
// Jitted code: heap -> nibble map -> method start -> code header -> the RUNTIME_FUNCTION that
// contains the ip. Invariant: a method is only found if the ip lies in one of its own
// RUNTIME_FUNCTIONs; a gap between methods is not code. Signal-safe: yes.
//
// The nibble map has one nibble for each 32-byte bucket of code. A u32 has eight of them, the most
// significant first. Nibble n > 0: a method starts at bucket + (n - 1) * 4. In contract version 2,
// a u32 whose lowest nibble is above 8 is a pointer instead: all of its 256 bytes belong to one
// method, which starts at map base + (u32 & ~15) + (lowest nibble - 9) * 4. Version 1 (.NET 8 and
// 9) has no pointers: a method covers all empty u32s after its start.
#include "codemap/jit.h"

enum {
  BUCKET = 32,
  BUCKETS_PER_UNIT = 8,
  UNIT_BYTES = BUCKET * BUCKETS_PER_UNIT,
  POINTER_NIBBLE = 9,
  MAX_UNWIND_INFOS = 65536,  // main body and funclets; a header with more is not a header
};

CS_ISLAND static bool is_pointer(uint32_t unit) {
  return (unit & 15) >= POINTER_NIBBLE;
}

CS_ISLAND static uint64_t pointer_start(uint64_t map_base, uint32_t unit) {
  return map_base + (unit & ~15u) + ((unit & 15) - POINTER_NIBBLE) * 4u;
}

// Returns the start that the last used nibble of `unit` encodes, going back over empty buckets.
// `unit` is shifted so that the nibble of bucket `bucket` is the lowest.
CS_ISLAND static uint64_t last_start(uint64_t map_base, uint32_t unit, uint64_t bucket) {
  while ((unit & 15) == 0) {
    unit >>= 4;
    bucket--;
  }
  return map_base + bucket * BUCKET + ((unit & 15) - 1) * 4u;
}

// Finds the start of the method that may contain `ip`, or 0. Returns false if the map is
// unreadable.
CS_ISLAND static bool method_start(const struct cs_reader *r, bool nibbles_only, uint64_t map,
                                   uint64_t map_base, uint64_t ip, uint64_t *start) {
  uint64_t offset = ip - map_base;
  uint64_t bucket = offset / BUCKET;
  uint32_t index = (uint32_t)(offset / UNIT_BYTES);  // no heap has 2^40 bytes
  uint32_t unit;
  *start = 0;
  if (!cs_get_u32(r, map + 4ull * index, &unit)) return false;
  if (is_pointer(unit)) {
    *start = pointer_start(map_base, unit);
    return true;
  }
  unit >>= 28 - (bucket % BUCKETS_PER_UNIT) * 4;
  uint32_t nibble = unit & 15;
  if (nibble != 0 && (nibble - 1) * 4 <= offset % BUCKET) {
    *start = map_base + bucket * BUCKET + (nibble - 1) * 4u;
    return true;
  }
  unit >>= 4;  // no method of this bucket starts before the ip: look further back
  if (unit != 0) {
    *start = last_start(map_base, unit, bucket - 1);
    return true;
  }
  // Go back to the last u32 that is not empty. With pointers, that is the one just before.
  do {
    if (index == 0) return true;
    index--;
    if (!cs_get_u32(r, map + 4ull * index, &unit)) return false;
  } while (unit == 0 && nibbles_only);
  if (is_pointer(unit))
    *start = pointer_start(map_base, unit);
  else if (unit != 0)
    *start = last_start(map_base, unit, (index + 1ull) * BUCKETS_PER_UNIT - 1);
  return true;
}

struct entry {
  uint32_t raw[CS_RUNTIME_FUNCTION_BYTES / 4];
};
CS_ISLAND static inline uint32_t begin_of(const struct cs_layout *layout, const struct entry *e) {
  return e->raw[layout->runtime_function.begin / 4];
}

CS_ISLAND static bool read_entry(const struct cs_layout *layout, const struct cs_reader *r,
                                 uint64_t header, uint32_t index, struct entry *entry) {
  uint64_t at =
      header + layout->code_header.unwind_infos + (uint64_t)index * layout->runtime_function.size;
  return cs_get(r, at, entry->raw, sizeof entry->raw);
}

// Finds the entry that contains `ip`. A header's entries are sorted: main body first, then
// funclets.
CS_ISLAND static enum cs_stop find_entry(const struct cs_layout *layout, const struct cs_reader *r,
                                         uint64_t header, uint64_t ip, struct cs_code *code) {
  struct cs_members m;
  uint32_t count, members = cs_max_u32(layout->code_header.num_unwind_infos + 4,
                                       layout->code_header.method_desc + 8);
  struct entry e;
  if (!cs_members_open(&m, r, header, members) ||
      !cs_member_u64(&m, layout->code_header.method_desc, &code->function_id) ||
      !cs_member_u32(&m, layout->code_header.num_unwind_infos, &count))
    return CS_STOP_UNREADABLE;
  if (count == 0 || count > MAX_UNWIND_INFOS) return CS_STOP_BAD_UNWIND;
  if (!read_entry(layout, r, header, 0, &e)) return CS_STOP_UNREADABLE;
  uint64_t base = code->method_start - begin_of(layout, &e);
  uint32_t lo = 0, hi = count;  // the last entry that begins at or before the ip
  while (hi - lo > 1) {
    uint32_t mid = lo + (hi - lo) / 2;
    struct entry middle;
    if (!read_entry(layout, r, header, mid, &middle)) return CS_STOP_UNREADABLE;
    if (base + begin_of(layout, &middle) <= ip) {
      lo = mid;
      e = middle;
    } else {
      hi = mid;
    }
  }
  uint32_t begin = begin_of(layout, &e), end;
  if (!cs_get_function_end(r, layout, e.raw, base, &end)) return CS_STOP_UNREADABLE;
  if (begin >= end || ip < base + begin || ip >= base + end) return CS_STOP_NONE;
  code->kind = CS_CODE_JIT;
  code->base = base;
  code->begin = base + begin;
  code->end = base + end;
  code->unwind_info = base + e.raw[layout->runtime_function.unwind_data / 4];
  code->funclet = lo != 0;
  return CS_STOP_NONE;
}

CS_ISLAND enum cs_stop cs_jit_start(const struct cs_world *world, const struct cs_range *range,
                                    uint64_t ip, uint64_t *start) {
  const struct cs_layout *layout = &world->layout;
  const struct cs_reader *r = &range->reader;
  struct cs_members m;
  uint64_t begin, map_base, at;  // at: the heap's end, then its map (a handler's stack is small)
  uint32_t members =
      cs_max_u32(cs_max_u32(layout->heap_node.start_address, layout->heap_node.end_address),
                 cs_max_u32(layout->heap_node.map_base, layout->heap_node.header_map));
  *start = 0;
  if (!cs_members_open(&m, r, range->heap, members + 8) ||
      !cs_member_u64(&m, layout->heap_node.start_address, &begin) ||
      !cs_member_u64(&m, layout->heap_node.end_address, &at) ||
      !cs_member_u64(&m, layout->heap_node.map_base, &map_base))
    return CS_STOP_UNREADABLE;
  if (ip < begin || ip >= at || ip < map_base) return CS_STOP_NONE;
  if (!cs_member_u64(&m, layout->heap_node.header_map, &at) ||
      !method_start(r, layout->nibbles_only, at, map_base, ip, start))
    return CS_STOP_UNREADABLE;
  if (*start < begin) *start = 0;
  return CS_STOP_NONE;
}

CS_ISLAND enum cs_stop cs_jit_find(const struct cs_world *world, const struct cs_range *range,
                                   uint64_t ip, struct cs_code *code) {
  const struct cs_layout *layout = &world->layout;
  const struct cs_reader *r = &range->reader;
  uint64_t start, header;
  enum cs_stop stop = cs_jit_start(world, range, ip, &start);
  if (stop != CS_STOP_NONE || start == 0) return stop;
  if (!cs_get_u64(r, start - 8, &header)) return CS_STOP_UNREADABLE;
  code->method_start = start;
  if (header <= layout->stub_code_block_last) {
    code->kind = CS_CODE_STUB;
    code->stub_kind = (uint32_t)header;
    code->begin = start;
    return CS_STOP_NONE;
  }
  return find_entry(layout, r, header, ip, code);
}
