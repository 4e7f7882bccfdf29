// SPDX-License-Identifier: MIT
// The headers of a PE file. Invariant: every offset is checked against the file's size by the read
// itself. One thread. Signal-safe: no.
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metadata/metadata.h"

enum { MAX_SECTIONS = 96, SECTION_BYTES = 40, DIRECTORY_BYTES = 8 };

static uint32_t u16(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}
static uint32_t u32(const uint8_t *at) {
  return u16(at) | u16(at + 2) << 16;
}

bool cs_pe_bytes(const struct cs_pe *pe, uint64_t offset, void *out, size_t size) {
  return offset < (uint64_t)1 << 40 && pread(pe->fd, out, size, (off_t)offset) == (ssize_t)size;
}

// The optional header: of 32 and 64 bits, which differ in where the directories begin.
static bool read_directories(struct cs_pe *pe, uint64_t at, size_t size) {
  uint8_t optional[112 + CS_COUNT(pe->directory) * DIRECTORY_BYTES];
  size_t have = size < sizeof optional ? size : sizeof optional;
  if (have < 2 || !cs_pe_bytes(pe, at, optional, have)) return false;
  size_t begin = u16(optional) == 0x20B ? 112 : u16(optional) == 0x10B ? 96 : 0;
  if (begin == 0 || have < begin) return false;
  pe->directory_count = u32(optional + begin - 4);
  size_t there = (have - begin) / DIRECTORY_BYTES;
  if (pe->directory_count > there) pe->directory_count = (uint32_t)there;
  if (pe->directory_count > CS_COUNT(pe->directory)) pe->directory_count = CS_COUNT(pe->directory);
  for (uint32_t i = 0; i < pe->directory_count; i++) {
    pe->directory[i].rva = u32(optional + begin + i * DIRECTORY_BYTES);
    pe->directory[i].size = u32(optional + begin + i * DIRECTORY_BYTES + 4);
  }
  return true;
}

static bool read_headers(struct cs_pe *pe) {
  uint8_t dos[64], coff[24];
  struct stat st;
  if (fstat(pe->fd, &st) != 0 || !S_ISREG(st.st_mode) || !cs_pe_bytes(pe, 0, dos, sizeof dos) ||
      dos[0] != 'M' || dos[1] != 'Z')
    return false;
  uint64_t at = u32(dos + 60);
  if (!cs_pe_bytes(pe, at, coff, sizeof coff) || memcmp(coff, "PE\0\0", 4) != 0) return false;
  pe->section_count = u16(coff + 6);
  uint32_t optional_size = u16(coff + 20);
  pe->sections = at + sizeof coff + optional_size;
  return pe->section_count <= MAX_SECTIONS && read_directories(pe, at + sizeof coff, optional_size);
}

bool cs_pe_open(struct cs_pe *pe, const char *path) {
  *pe = (struct cs_pe){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (pe->fd < 0) return false;
  if (read_headers(pe)) return true;
  cs_pe_close(pe);
  return false;
}

void cs_pe_close(struct cs_pe *pe) {
  (void)close(pe->fd);
}

bool cs_pe_offset(const struct cs_pe *pe, uint32_t rva, uint64_t *offset) {
  for (uint32_t i = 0; i < pe->section_count; i++) {
    uint8_t section[SECTION_BYTES];
    if (!cs_pe_bytes(pe, pe->sections + (uint64_t)i * sizeof section, section, sizeof section))
      return false;
    uint32_t address = u32(section + 12), raw_size = u32(section + 16);
    if (rva < address || rva - address >= raw_size) continue;
    *offset = (uint64_t)u32(section + 20) + (rva - address);
    return true;
  }
  return false;
}

bool cs_pe_directory(const struct cs_pe *pe, unsigned which, uint64_t *offset, uint32_t *size) {
  if (which >= pe->directory_count || pe->directory[which].size == 0) return false;
  *size = pe->directory[which].size;
  return cs_pe_offset(pe, pe->directory[which].rva, offset);
}
