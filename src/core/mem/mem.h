// SPDX-License-Identifier: MIT
// mem: the source of the bytes that a walk reads: this process, another one, or a copy. The rest of
// the core reads through it and does not know which. Signal-safe: yes.
//
// cs_mem_read is for memory that something keeps alive: the thread's own stack within its bounds,
// and runtime structures that are never freed. cs_mem_read_guarded is for memory that may be gone;
// it fails instead of faulting. One source combines two: a copy of a sleeping thread's stack,
// backed by this process's own memory (threads/asleep.c).
#pragma once

#include "base/base.h"

struct cs_mem {
  // Reads `len` bytes at `addr`; returns false if they are not readable. NULL: plain loads from
  // this process.
  bool (*read)(const struct cs_mem *mem, uint64_t addr, void *dst, size_t len);
  // What a guarded read calls if `read` is set. NULL: `read` itself, which then never faults.
  bool (*read_guarded)(const struct cs_mem *mem, uint64_t addr, void *dst, size_t len);
  // If `read` is set: all of the walked stack is nevertheless at its own addresses in this process,
  // so the loop that loads its words directly (walk/run.c) may be used. Set only by
  // tests/tools/handlers_walk.c.
  bool stack_in_place;
  int pid;           // this process's own id, for guarded reads
  bool guard_works;  // process_vm_readv on this process was found to work at start
};

// Words of foreign structures, of any alignment, which may alias objects of any type.
typedef uint64_t __attribute__((aligned(1), may_alias)) cs_any_u64;
typedef uint32_t __attribute__((aligned(1), may_alias)) cs_any_u32;
typedef uint16_t __attribute__((aligned(1), may_alias)) cs_any_u16;

// Prepares `mem` for this process, and tests whether guarded reads work. Not for handlers.
void cs_mem_init_self(struct cs_mem *mem);

// Copies without calling memcpy, which handlers must not do. It copies word by word, since most
// copies have 8 to 100 bytes, and `rep movsb` takes 12 to 30 ns to start. The rest is not copied
// byte by byte, since a load of several bytes that were just stored one by one stalls (store
// forwarding fails). Signal-safe.
CS_ISLAND static inline void cs_copy(void *dst, const void *src, size_t len) {
  uint8_t *to = (uint8_t *)dst;
  const uint8_t *from = (const uint8_t *)src;
  for (; len >= 8; len -= 8, to += 8, from += 8) *(cs_any_u64 *)to = *(const cs_any_u64 *)from;
  if (len >= 4) {
    *(cs_any_u32 *)to = *(const cs_any_u32 *)from;
    len -= 4, to += 4, from += 4;
  }
  if (len >= 2) {
    *(cs_any_u16 *)to = *(const cs_any_u16 *)from;
    len -= 2, to += 2, from += 2;
  }
  if (len != 0) *to = *from;
}

CS_ISLAND bool cs_mem_read_guarded(const struct cs_mem *mem, uint64_t addr, void *dst, size_t len);

CS_ISLAND static inline bool cs_mem_read(const struct cs_mem *mem, uint64_t addr, void *dst,
                                         size_t len) {
  if (CS_UNLIKELY(mem->read != NULL)) return mem->read(mem, addr, dst, len);
  cs_copy(dst, (const void *)(uintptr_t)addr, len);
  return true;
}

CS_ISLAND static inline bool cs_mem_u64(const struct cs_mem *mem, uint64_t addr, uint64_t *out) {
  if (CS_UNLIKELY(mem->read != NULL)) return mem->read(mem, addr, out, 8);
  *out = *(const volatile cs_any_u64 *)(uintptr_t)addr;
  return true;
}
CS_ISLAND static inline bool cs_mem_u32(const struct cs_mem *mem, uint64_t addr, uint32_t *out) {
  if (CS_UNLIKELY(mem->read != NULL)) return mem->read(mem, addr, out, 4);
  *out = *(const volatile cs_any_u32 *)(uintptr_t)addr;
  return true;
}
