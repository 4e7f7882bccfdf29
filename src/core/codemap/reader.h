// SPDX-License-Identifier: MIT
// Reads of runtime structures: direct, or guarded if they belong to collectible code. Signal-safe:
// yes.
#pragma once

#include "codemap/collectible.h"
#include "contract/layout.h"

struct cs_reader {
  const struct cs_mem *mem;
  bool guarded;          // the structure belongs to collectible code
  struct cs_near *near;  // of the walk; NULL: nothing is kept
};

CS_ISLAND static inline bool cs_get_guarded(const struct cs_reader *r, uint64_t addr, void *dst,
                                            size_t len) {
  return r->near != NULL ? cs_collectible_read(r->mem, r->near, addr, dst, len)
                         : cs_mem_read_guarded(r->mem, addr, dst, len);
}

CS_ISLAND static inline bool cs_get(const struct cs_reader *r, uint64_t addr, void *dst,
                                    size_t len) {
  if (CS_UNLIKELY(r->guarded)) return cs_get_guarded(r, addr, dst, len);
  return cs_mem_read(r->mem, addr, dst, len);
}
CS_ISLAND static inline bool cs_get_u64(const struct cs_reader *r, uint64_t addr, uint64_t *out) {
  if (CS_UNLIKELY(r->guarded)) return cs_get_guarded(r, addr, out, 8);
  return cs_mem_u64(r->mem, addr, out);
}
CS_ISLAND static inline bool cs_get_u32(const struct cs_reader *r, uint64_t addr, uint32_t *out) {
  if (CS_UNLIKELY(r->guarded)) return cs_get_guarded(r, addr, out, 4);
  return cs_mem_u32(r->mem, addr, out);
}

// Several members of one structure. If they are guarded, all are copied at once, since each guarded
// read is a system call of 0.9 us; if not, each is read when it is needed.
struct cs_members {
  const struct cs_reader *reader;
  uint64_t base;
  uint8_t copy[CS_MEMBERS_BYTES];
};

// `size` must include the last member that will be read. Returns false if the structure is
// unreadable.
CS_ISLAND static inline bool cs_members_open(struct cs_members *m, const struct cs_reader *r,
                                             uint64_t base, size_t size) {
  m->reader = r;
  m->base = base;
  if (CS_LIKELY(!r->guarded)) return true;
  return size <= sizeof m->copy && cs_get_guarded(r, base, m->copy, size);
}
CS_ISLAND static inline bool cs_member_u64(const struct cs_members *m, uint32_t off,
                                           uint64_t *out) {
  if (CS_LIKELY(!m->reader->guarded)) return cs_mem_u64(m->reader->mem, m->base + off, out);
  *out = *(const cs_any_u64 *)(const void *)(m->copy + off);
  return true;
}
CS_ISLAND static inline bool cs_member_u32(const struct cs_members *m, uint32_t off,
                                           uint32_t *out) {
  if (CS_LIKELY(!m->reader->guarded)) return cs_mem_u32(m->reader->mem, m->base + off, out);
  *out = *(const cs_any_u32 *)(const void *)(m->copy + off);
  return true;
}

CS_ISLAND static inline uint32_t cs_max_u32(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

// Finds where the function of a RUNTIME_FUNCTION ends, relative to `base`.
CS_ISLAND static inline bool cs_get_function_end(const struct cs_reader *r,
                                                 const struct cs_layout *layout,
                                                 const uint32_t *raw, uint64_t base,
                                                 uint32_t *end) {
  uint32_t unwind_data = raw[layout->runtime_function.unwind_data / 4], first = 0;
  if (cs_end_is_in_unwind_data(unwind_data) && !cs_get_u32(r, base + unwind_data, &first))
    return false;
  *end = cs_function_end(&layout->runtime_function, raw, first);
  return true;
}
