// SPDX-License-Identifier: MIT
// Reads of runtime structures, direct or guarded by what they belong to. Signal-safe: yes.
#ifndef CS_READER_H
#define CS_READER_H

#include "mem/mem.h"

struct cs_reader {
  const struct cs_mem *mem;
  bool guarded;  // the structure belongs to code that may be unloaded
};

CS_ISLAND static inline bool cs_get(const struct cs_reader *r, uint64_t addr, void *dst,
                                    size_t len) {
  if (CS_UNLIKELY(r->guarded)) return cs_mem_read_guarded(r->mem, addr, dst, len);
  return cs_mem_read(r->mem, addr, dst, len);
}
CS_ISLAND static inline bool cs_get_u64(const struct cs_reader *r, uint64_t addr, uint64_t *out) {
  if (CS_UNLIKELY(r->guarded)) return cs_mem_read_guarded(r->mem, addr, out, 8);
  return cs_mem_u64(r->mem, addr, out);
}
CS_ISLAND static inline bool cs_get_u32(const struct cs_reader *r, uint64_t addr, uint32_t *out) {
  if (CS_UNLIKELY(r->guarded)) return cs_mem_read_guarded(r->mem, addr, out, 4);
  return cs_mem_u32(r->mem, addr, out);
}

#endif
