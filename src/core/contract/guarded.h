// SPDX-License-Identifier: MIT
// Reads of this process's memory that fail instead of faulting, for checks that may look in the
// wrong place. Private to the component. Not for handlers.
#pragma once

#include "base/base.h"
#include "mem/mem.h"

bool cs_guarded_read(uint64_t addr, void *dst, size_t len);
extern const struct cs_mem cs_guarded_self;  // which reads by it
static inline bool cs_guarded_u64(uint64_t addr, uint64_t *out) {
  return cs_guarded_read(addr, out, sizeof *out);
}
static inline bool cs_guarded_u32(uint64_t addr, uint32_t *out) {
  return cs_guarded_read(addr, out, sizeof *out);
}
