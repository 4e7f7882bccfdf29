// SPDX-License-Identifier: MIT
// Reads PE files by mapping them; every offset is checked against the file. One thread at a time;
// not for handlers. Invariant: a range that ref_pe_at returns lies in one section of the file.
#include "ref/pe.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  PE_OFFSET = 0x3C,
  OPTIONAL = 24,  // from the PE signature
  PE32 = 0x10B,   // IL only
  PE32PLUS = 0x20B,
  DIRECTORIES = 112,  // in the PE32+ optional header
  CLI_DIRECTORY = 14,
  NATIVE_HEADER = 64,  // in the CLI header
  SECTION_BYTES = 40,
  RTR_SIGNATURE = 0x00525452,
  RUNTIME_FUNCTIONS = 102,
};

static bool word(const struct ref_pe *pe, uint64_t at, unsigned size, uint32_t *out) {
  *out = 0;
  if (at + size > pe->size) return false;
  memcpy(out, pe->bytes + at, size);
  return true;
}

const uint8_t *ref_pe_at(const struct ref_pe *pe, uint32_t rva, uint32_t size) {
  for (uint32_t i = 0; i < pe->section_count; i++) {
    const struct ref_section *s = &pe->sections[i];
    if (rva < s->rva || (uint64_t)rva + size > (uint64_t)s->rva + s->file_size) continue;
    return pe->bytes + s->file + (rva - s->rva);
  }
  return NULL;
}

static bool read_sections(struct ref_pe *pe, uint32_t nt, uint32_t *cli_rva) {
  uint32_t count, optional_size, magic, directories;
  if (!word(pe, nt + 6, 2, &count) || !word(pe, nt + 20, 2, &optional_size) ||
      !word(pe, nt + OPTIONAL, 2, &magic) || (magic != PE32PLUS && magic != PE32))
    return false;
  *cli_rva = 0;
  if (magic == PE32) return true;  // has no native code
  if (!word(pe, nt + OPTIONAL + DIRECTORIES - 4, 4, &directories) ||
      count > sizeof pe->sections / sizeof pe->sections[0])
    return false;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t at = nt + OPTIONAL + optional_size + (uint64_t)i * SECTION_BYTES;
    struct ref_section *s = &pe->sections[pe->section_count++];
    if (!word(pe, at + 8, 4, &s->size) || !word(pe, at + 12, 4, &s->rva) ||
        !word(pe, at + 16, 4, &s->file_size) || !word(pe, at + 20, 4, &s->file) ||
        (uint64_t)s->file + s->file_size > pe->size)
      return false;
  }
  return directories <= CLI_DIRECTORY ||
         word(pe, nt + OPTIONAL + DIRECTORIES + CLI_DIRECTORY * 8, 4, cli_rva);
}

static uint32_t u32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static void find_functions(struct ref_pe *pe, uint32_t cli_rva) {
  const uint8_t *cli = cli_rva != 0 ? ref_pe_at(pe, cli_rva, NATIVE_HEADER + 8) : NULL;
  const uint8_t *header = cli != NULL ? ref_pe_at(pe, u32(cli + NATIVE_HEADER), 16) : NULL;
  if (header == NULL || u32(header) != RTR_SIGNATURE) return;
  uint32_t count = u32(header + 12);
  const uint8_t *entries = ref_pe_at(pe, u32(cli + NATIVE_HEADER) + 16, count * 12);
  for (uint32_t i = 0; entries != NULL && i < count; i++) {
    const uint8_t *entry = entries + i * 12;
    if (u32(entry) != RUNTIME_FUNCTIONS) continue;
    pe->functions =
        (const struct ref_function *)(const void *)ref_pe_at(pe, u32(entry + 4), u32(entry + 8));
    pe->table_size = pe->functions != NULL ? u32(entry + 8) : 0;
    pe->function_count = pe->functions != NULL ? u32(entry + 8) / sizeof *pe->functions : 0;
  }
}

bool ref_pe_open(struct ref_pe *pe, const char *path) {
  struct stat status;
  uint32_t nt, signature, cli_rva;
  memset(pe, 0, sizeof *pe);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool ok = fstat(fd, &status) == 0 && status.st_size > 0;
  void *at = ok ? mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  (void)close(fd);
  if (at == MAP_FAILED) return false;
  pe->bytes = at;
  pe->size = (size_t)status.st_size;
  if (word(pe, PE_OFFSET, 4, &nt) && word(pe, nt, 4, &signature) && signature == 0x4550 &&
      read_sections(pe, nt, &cli_rva)) {
    find_functions(pe, cli_rva);
    return true;
  }
  ref_pe_close(pe);
  return false;
}

void ref_pe_close(struct ref_pe *pe) {
  if (pe->bytes != NULL) (void)munmap((void *)(uintptr_t)pe->bytes, pe->size);
  memset(pe, 0, sizeof *pe);
}
