// SPDX-License-Identifier: MIT
// Permanent code: the code of range sections that are not marked as collectible, neither themselves
// nor in any pointer that leads to them. Invariant: methods are found by the nibble map alone,
// since their code headers are what is to be checked. Signal-safe: yes.
#include "codemap/permanent.h"

#include "codemap/jit.h"

enum {
  STEP = 64,  // small methods may be skipped
  PAGE = 4096,
};

CS_ISLAND static void add_module(struct cs_permanent *list, uint64_t module, uint64_t ip) {
  for (uint32_t i = 0; i < list->modules; i++)
    if (list->module[i] == module) return;
  if (list->modules == CS_COUNT(list->module)) return;
  list->image[list->modules] = ip;
  list->module[list->modules++] = module;
}

CS_ISLAND static void add_start(const struct cs_world *world, const struct cs_range *range,
                                uint64_t ip, struct cs_permanent *list) {
  uint64_t start, header;
  uint64_t last = list->starts > 0 ? list->start[list->starts - 1] : 0;
  if (list->starts == CS_COUNT(list->start) ||
      cs_jit_start(world, range, ip, &start) != CS_STOP_NONE || start <= last ||
      !cs_get_u64(&range->reader, start - 8, &header) ||
      header <= world->layout.stub_code_block_last)
    return;
  list->start[list->starts++] = start;
}

CS_ISLAND void cs_permanent_add(const struct cs_world *world, uint64_t begin, uint64_t end,
                                struct cs_permanent *list) {
  for (uint64_t ip = begin; ip < end;) {
    struct cs_range range;
    uint64_t next = (ip | (PAGE - 1)) + 1;
    bool found = cs_range_find(world, ip, NULL, &range) == CS_STOP_NONE && range.found &&
                 !range.reader.guarded;
    if (found && range.r2r_module != 0) {
      add_module(list, range.r2r_module, ip);
      if (range.end > next) next = range.end;
    } else if (found && (range.flags & CS_RANGE_CODE_HEAP) && range.heap != 0 &&
               list->starts < CS_COUNT(list->start)) {
      add_start(world, &range, ip, list);
      next = ip + STEP;
    }
    ip = next;
  }
}
