// SPDX-License-Identifier: MIT
// memcpy and memset for the island, hidden in the library. On this architecture the compiler calls
// them for structures of more than 256 bytes, whatever its options are, and struct cs_regs has
// more; it does so only for whole structures, so there are no other calls. Signal-safe: yes.
#include "mem/mem.h"

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memset(void *to, int value, size_t size);

CS_ISLAND void *memcpy(void *restrict to, const void *restrict from, size_t size) {
  uint8_t *d = to;
  const uint8_t *s = from;
  for (; size >= 8; size -= 8, d += 8, s += 8)
    *(cs_any_u64 *)(void *)d = *(const cs_any_u64 *)(const void *)s;
  for (; size != 0; size--) *d++ = *s++;
  return to;
}

CS_ISLAND void *memset(void *to, int value, size_t size) {
  uint8_t *d = to;
  uint64_t word = (uint8_t)value * 0x0101010101010101u;
  for (; size >= 8; size -= 8, d += 8) *(cs_any_u64 *)(void *)d = word;
  for (; size != 0; size--) *d++ = (uint8_t)value;
  return to;
}
