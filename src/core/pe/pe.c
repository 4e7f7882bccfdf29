// SPDX-License-Identifier: MIT
// The headers of a PE image. Invariant: every offset is checked by the read itself. One thread.
// Signal-safe: no.
#include <string.h>

#include "base/bytes.h"
#include "pe/pe.h"

enum { MAX_SECTIONS = 96, SECTION_BYTES = 40, DIRECTORY_BYTES = 8 };

bool cs_pe_bytes(const struct cs_pe *pe, uint64_t offset, void *out, size_t size) {
  return offset < (uint64_t)1 << 40 && pe->read(pe->from, offset, out, size);
}

// Reads the optional header. Its 32-bit and 64-bit forms differ in where the data directories
// begin.
static bool read_directories(struct cs_pe *pe, uint64_t at, size_t size) {
  uint8_t optional[112 + CS_COUNT(pe->directory) * DIRECTORY_BYTES];
  size_t have = size < sizeof optional ? size : sizeof optional;
  if (have < 2 || !cs_pe_bytes(pe, at, optional, have)) return false;
  size_t begin = cs_u16_at(optional) == 0x20B ? 112 : cs_u16_at(optional) == 0x10B ? 96 : 0;
  if (begin == 0 || have < begin) return false;
  pe->image_size = cs_u32_at(optional + 56);
  pe->directory_count = cs_u32_at(optional + begin - 4);
  size_t there = (have - begin) / DIRECTORY_BYTES;
  if (pe->directory_count > there) pe->directory_count = (uint32_t)there;
  if (pe->directory_count > CS_COUNT(pe->directory)) pe->directory_count = CS_COUNT(pe->directory);
  for (uint32_t i = 0; i < pe->directory_count; i++) {
    pe->directory[i].rva = cs_u32_at(optional + begin + i * DIRECTORY_BYTES);
    pe->directory[i].size = cs_u32_at(optional + begin + i * DIRECTORY_BYTES + 4);
  }
  return true;
}

static bool read_headers(struct cs_pe *pe) {
  uint8_t dos[64], coff[24];
  if (!cs_pe_bytes(pe, 0, dos, sizeof dos) || dos[0] != 'M' || dos[1] != 'Z') return false;
  uint64_t at = cs_u32_at(dos + 60);
  if (!cs_pe_bytes(pe, at, coff, sizeof coff) || memcmp(coff, "PE\0\0", 4) != 0) return false;
  pe->section_count = cs_u16_at(coff + 6);
  pe->stamp = cs_u32_at(coff + 8);
  uint32_t optional_size = cs_u16_at(coff + 20);
  pe->sections = at + sizeof coff + optional_size;
  return pe->section_count <= MAX_SECTIONS && read_directories(pe, at + sizeof coff, optional_size);
}

bool cs_pe_open(struct cs_pe *pe, cs_pe_read_fn *read, void *from, enum cs_pe_layout layout) {
  *pe = (struct cs_pe){.read = read, .from = from, .layout = layout};
  return read_headers(pe);
}

// Checks the signature, and that the metadata can be read up to its last byte.
static bool has_metadata(const struct cs_pe *pe) {
  static const uint8_t signature[] = {'B', 'S', 'J', 'B'};
  uint64_t offset;
  uint32_t size;
  uint8_t found[sizeof signature];
  return cs_pe_metadata(pe, &offset, &size) && size >= sizeof found &&
         cs_pe_bytes(pe, offset, found, sizeof found) &&
         memcmp(found, signature, sizeof found) == 0 &&
         cs_pe_bytes(pe, offset + size - 1, found, 1);
}

// The mapped layout is tried first. The first page of a mapped image is that of the file, so
// everything that is checked here may be there at its offset in a flat image, but the rest of the
// metadata is not.
bool cs_pe_open_loaded(struct cs_pe *pe, cs_pe_read_fn *read, void *from) {
  return (cs_pe_open(pe, read, from, CS_PE_MAPPED) && has_metadata(pe)) ||
         (cs_pe_open(pe, read, from, CS_PE_FLAT) && has_metadata(pe));
}

bool cs_pe_place(const struct cs_pe *pe, uint32_t rva, uint64_t *offset) {
  if (pe->layout == CS_PE_MAPPED) *offset = rva;
  if (pe->layout == CS_PE_MAPPED) return rva != 0 && rva < pe->image_size;
  for (uint32_t i = 0; i < pe->section_count; i++) {
    uint8_t section[SECTION_BYTES];
    if (!cs_pe_bytes(pe, pe->sections + (uint64_t)i * sizeof section, section, sizeof section))
      return false;
    uint32_t address = cs_u32_at(section + 12), raw_size = cs_u32_at(section + 16);
    if (rva < address || rva - address >= raw_size) continue;
    *offset = (uint64_t)cs_u32_at(section + 20) + (rva - address);
    return true;
  }
  return false;
}

// The CLI header says where the metadata is.
bool cs_pe_metadata(const struct cs_pe *pe, uint64_t *offset, uint32_t *size) {
  uint8_t cli[16];
  uint64_t at;
  uint32_t cli_size;
  if (!cs_pe_directory(pe, CS_PE_CLI, &at, &cli_size) || cli_size < sizeof cli ||
      !cs_pe_bytes(pe, at, cli, sizeof cli))
    return false;
  *size = cs_u32_at(cli + 12);
  return cs_pe_place(pe, cs_u32_at(cli + 8), offset);
}

bool cs_pe_directory(const struct cs_pe *pe, unsigned which, uint64_t *offset, uint32_t *size) {
  if (which >= pe->directory_count || pe->directory[which].size == 0) return false;
  *size = pe->directory[which].size;
  return cs_pe_place(pe, pe->directory[which].rva, offset);
}
