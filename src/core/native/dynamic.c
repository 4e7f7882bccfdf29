// SPDX-License-Identifier: MIT
// The dynamic section of an image, and its exported symbols, through the GNU hash table. Invariant:
// all reads are guarded, and their number is bounded, whatever the image says. Any thread.
// Signal-safe: no.
#include "native/dynamic.h"

#include <elf.h>
#include <string.h>

enum { MAX_ENTRIES = 256, MAX_CHAIN = 4096, MAX_NAME = 64 };

// glibc relocates these pointers in place; other loaders leave the values of the file.
static uint64_t pointer(uint64_t bias, uint64_t value) {
  return value != 0 && value < bias ? value + bias : value;
}

bool cs_dynamic_read(struct cs_process_memory *process, uint64_t bias, uint64_t address,
                     uint64_t size, struct cs_dynamic *out) {
  Elf64_Dyn entries[MAX_ENTRIES];
  uint64_t count = size / sizeof *entries;
  if (count > MAX_ENTRIES) count = MAX_ENTRIES;
  *out = (struct cs_dynamic){.bias = bias};
  if (!cs_process_memory_read(process, address, entries, (size_t)count * sizeof *entries))
    return false;
  for (uint64_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
    uint64_t at = pointer(bias, entries[i].d_un.d_ptr);
    if (entries[i].d_tag == DT_INIT) out->init = at;
    if (entries[i].d_tag == DT_FINI) out->fini = at;
    if (entries[i].d_tag == DT_SYMTAB) out->symbols = at;
    if (entries[i].d_tag == DT_STRTAB) out->strings = at;
    if (entries[i].d_tag == DT_GNU_HASH) out->gnu_hash = at;
  }
  return true;
}

static uint32_t gnu_hash(const char *name) {
  uint32_t h = 5381;
  for (; *name != '\0'; name++) h = h * 33 + (uint8_t)*name;
  return h;
}

static bool is_named(struct cs_process_memory *process, const struct cs_dynamic *dynamic,
                     const Elf64_Sym *symbol, const char *name) {
  char text[MAX_NAME];
  size_t len = strlen(name) + 1;
  return len <= sizeof text &&
         cs_process_memory_read(process, dynamic->strings + symbol->st_name, text, len) &&
         memcmp(text, name, len) == 0;
}

uint64_t cs_dynamic_find(struct cs_process_memory *process, const struct cs_dynamic *dynamic,
                         const char *name) {
  struct {
    uint32_t buckets, first, bloom_words, shift;
  } head;
  uint32_t want = gnu_hash(name), index, hash = 0;
  if (dynamic->symbols == 0 || dynamic->strings == 0 || dynamic->gnu_hash == 0 ||
      !cs_process_memory_read(process, dynamic->gnu_hash, &head, sizeof head) || head.buckets == 0)
    return 0;
  uint64_t buckets = dynamic->gnu_hash + sizeof head + head.bloom_words * UINT64_C(8);
  uint64_t chain = buckets + head.buckets * UINT64_C(4);
  if (!cs_process_memory_read(process, buckets + want % head.buckets * UINT64_C(4), &index,
                              sizeof index) ||
      index < head.first)
    return 0;
  for (uint32_t i = 0; i < MAX_CHAIN && (hash & 1) == 0; i++, index++) {
    Elf64_Sym symbol;
    if (!cs_process_memory_read(process, chain + (index - head.first) * UINT64_C(4), &hash,
                                sizeof hash))
      return 0;
    if ((hash | 1) == (want | 1) &&
        cs_process_memory_read(process, dynamic->symbols + index * sizeof symbol, &symbol,
                               sizeof symbol) &&
        is_named(process, dynamic, &symbol, name))
      return symbol.st_shndx != SHN_UNDEF ? dynamic->bias + symbol.st_value : 0;
  }
  return 0;
}
