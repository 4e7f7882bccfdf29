// SPDX-License-Identifier: MIT
// ReadyToRun code: module -> ReadyToRunInfo -> sorted RUNTIME_FUNCTION table. A component of a
// composite image has the table and the range of the composite, so it needs no special treatment.
// Cold parts are entries whose unwind info is chained to that of the hot part. Signal-safe: yes.
#include "codemap/r2r.h"

// Section 106 contains thunks that bind a call when it is first made: code, but not methods.
CS_ISLAND static bool in_delay_load_thunks(const struct cs_layout *layout,
                                           const struct cs_reader *r, uint64_t info, uint32_t rva) {
  uint64_t directory;
  uint32_t begin, size;
  return cs_get_u64(r, info + layout->r2r_info.delay_load_thunks, &directory) && directory != 0 &&
         cs_get_u32(r, directory + layout->image_data_directory.begin, &begin) &&
         cs_get_u32(r, directory + layout->image_data_directory.size, &size) && rva >= begin &&
         rva - begin < size;
}

// Finds the last entry that begins at or before the rva.
CS_ISLAND static bool search(const struct cs_layout *layout, const struct cs_reader *r,
                             uint64_t table, uint32_t count, uint32_t rva, uint32_t *found) {
  const uint32_t size = layout->runtime_function.size;
  uint32_t lo = 0, hi = count;
  while (hi - lo > 1) {
    uint32_t mid = lo + (hi - lo) / 2, begin;
    if (!cs_get_u32(r, table + (uint64_t)mid * size + layout->runtime_function.begin, &begin))
      return false;
    if (begin <= rva)
      lo = mid;
    else
      hi = mid;
  }
  *found = lo;
  return true;
}

CS_ISLAND enum cs_stop cs_r2r_find(const struct cs_world *world, const struct cs_range *range,
                                   uint64_t ip, struct cs_code *code) {
  const struct cs_layout *layout = &world->layout;
  const struct cs_reader *r = &range->reader;
  uint64_t info, table;
  uint32_t count;
  uint32_t rva = (uint32_t)(ip - range->begin);
  if (!cs_get_u64(r, range->r2r_module + layout->module.ready_to_run_info, &info))
    return CS_STOP_UNREADABLE;
  if (info == 0) return CS_STOP_NONE;
  if (!cs_get_u64(r, info + layout->r2r_info.runtime_functions, &table) ||
      !cs_get_u32(r, info + layout->r2r_info.num_runtime_functions, &count))
    return CS_STOP_UNREADABLE;
  if (table == 0 || count == 0) return CS_STOP_NONE;
  const uint32_t size = layout->runtime_function.size;
  uint32_t lo;
  if (!search(layout, r, table, count, rva, &lo)) return CS_STOP_UNREADABLE;
  uint32_t raw[CS_RUNTIME_FUNCTION_BYTES / 4], end;
  if (!cs_get(r, table + (uint64_t)lo * size, raw, sizeof raw)) return CS_STOP_UNREADABLE;
  uint32_t begin = raw[layout->runtime_function.begin / 4];
  if (!cs_get_function_end(r, layout, raw, range->begin, &end)) return CS_STOP_UNREADABLE;
  if (rva >= begin && rva < end) {
    code->kind = CS_CODE_R2R;
    code->base = range->begin;
    code->begin = range->begin + begin;
    code->end = range->begin + end;
    code->unwind_info = range->begin + raw[layout->runtime_function.unwind_data / 4];
    code->method_start = code->begin;
  } else if (in_delay_load_thunks(layout, r, info, rva)) {
    code->kind = CS_CODE_STUB;
    code->begin = ip;
  }
  return CS_STOP_NONE;
}

CS_ISLAND bool cs_r2r_table_of(const struct cs_world *world, uint64_t ip,
                               struct cs_r2r_table *table) {
  const struct cs_layout *layout = &world->layout;
  const struct cs_reader *r = &table->range.reader;
  uint64_t info, composite;
  uint32_t splits;
  if (cs_range_find(world, ip, NULL, &table->range) != CS_STOP_NONE || !table->range.found ||
      table->range.r2r_module == 0 ||
      !cs_get_u64(r, table->range.r2r_module + layout->module.ready_to_run_info, &info) ||
      info == 0 || !cs_get_u64(r, info + layout->r2r_info.composite_info, &composite) ||
      composite == 0 ||
      !cs_get_u64(r, info + layout->r2r_info.runtime_functions, &table->functions) ||
      !cs_get_u32(r, info + layout->r2r_info.num_runtime_functions, &table->count) ||
      !cs_get_u32(r, info + layout->r2r_info.num_hot_cold_map, &splits))
    return false;
  table->entry_points = composite + layout->r2r_info.entry_points;
  return table->functions != 0 && table->count != 0 && splits == 0;
}

CS_ISLAND bool cs_r2r_index_of(const struct cs_world *world, const struct cs_r2r_table *table,
                               uint64_t ip, uint32_t *index) {
  return search(&world->layout, &table->range.reader, table->functions, table->count,
                (uint32_t)(ip - table->range.begin), index);
}

CS_ISLAND bool cs_r2r_begin(const struct cs_world *world, const struct cs_r2r_table *table,
                            uint32_t index, uint64_t *begin) {
  const struct cs_layout *layout = &world->layout;
  uint32_t rva;
  uint64_t at = table->functions + (uint64_t)index * layout->runtime_function.size;
  if (!cs_get_u32(&table->range.reader, at + layout->runtime_function.begin, &rva)) return false;
  *begin = table->range.begin + rva;
  return true;
}
