// SPDX-License-Identifier: MIT
// mem: where bytes come from. Today this process; the walker above is written against this, so that
// another process, a core file or a recorded stack can be a source without a change to it.
// Signal-safe: yes.
//
// Two ways to read. `cs_mem_read` is for memory that something holds: the thread's own stack within
// its bounds, runtime structures that are never freed. `cs_mem_read_guarded` is for memory that may
// be gone: it answers false instead of faulting (for this process: process_vm_readv on oneself).
// A third source is both: a copy of a sleeping thread's stack before this process' own memory
// (threads/asleep.c).
#ifndef CS_MEM_MEM_H
#define CS_MEM_MEM_H

#include "base/base.h"

struct cs_mem {
  // NULL: this process, by plain loads. Else: reads `len` bytes at `addr`, false if not readable.
  bool (*read)(const struct cs_mem *mem, uint64_t addr, void *dst, size_t len);
  // With `read`: what guarded reads do. NULL: the same, since `read` never faults.
  bool (*read_guarded)(const struct cs_mem *mem, uint64_t addr, void *dst, size_t len);
  // With `read`: the walked stack lies at its own addresses here all the same, from end to end, so
  // that the loop that loads its words (walk/run.c) may be used: tests/tools/handlers_walk.c.
  bool stack_in_place;
  int pid;           // this process' own id, for guarded reads
  bool guard_works;  // process_vm_readv on oneself was tried at start and is allowed
};

// Words as they lie in foreign structures: of any alignment, beside whatever type they have there.
typedef uint64_t __attribute__((aligned(1), may_alias)) cs_any_u64;
typedef uint32_t __attribute__((aligned(1), may_alias)) cs_any_u32;

// Prepares `mem` for this process and tries whether guarded reads work. Not for handlers.
void cs_mem_init_self(struct cs_mem *mem);

// Copies without a call to memcpy. Signal-safe. By words: what is read here has 8 to 100 bytes, for
// which `rep movsb` takes 12 to 30 ns to get going.
CS_ISLAND static inline void cs_copy(void *dst, const void *src, size_t len) {
  uint8_t *to = (uint8_t *)dst;
  const uint8_t *from = (const uint8_t *)src;
  for (; len >= 8; len -= 8, to += 8, from += 8) *(cs_any_u64 *)to = *(const cs_any_u64 *)from;
  for (; len > 0; len--) *to++ = *from++;
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

#endif
