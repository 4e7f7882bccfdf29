// SPDX-License-Identifier: MIT
// What a managed module's file (PE) says of its symbols: the id of its portable PDB, where the
// compiler has put it, and the PDB itself where it is embedded. Read piece by piece, since modules
// are large and little of them is needed. Invariant: every offset is checked against the file's
// size by the read itself; sizes that come from the file are bounded before memory is taken for
// them. One thread. Signal-safe: no.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "lines/lines.h"

enum {
  MAX_SECTIONS = 96,
  MAX_ENTRIES = 64,  // of the debug directory
  ENTRY_BYTES = 28,
  DEBUG_DIRECTORY = 6,
  CODEVIEW = 2,
  EMBEDDED_PDB = 17,
  PORTABLE_MINOR = 0x504D,  // of a CodeView entry: it names a portable PDB
  MAX_PDB = 256 << 20,
};

static bool read_at(int fd, uint64_t offset, void *out, size_t size) {
  return offset < (uint64_t)1 << 40 && pread(fd, out, size, (off_t)offset) == (ssize_t)size;
}

static uint32_t u16(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}
static uint32_t u32(const uint8_t *at) {
  return u16(at) | u16(at + 2) << 16;
}

struct pe {
  int fd;
  uint32_t section_count;
  uint64_t sections;  // offset of the first section's header
  uint32_t debug_rva, debug_size;
};

static bool open_pe(struct pe *pe) {
  uint8_t dos[64], coff[24], optional[120 + 8 * 16];
  if (!read_at(pe->fd, 0, dos, sizeof dos) || dos[0] != 'M' || dos[1] != 'Z') return false;
  uint64_t at = u32(dos + 60);
  if (!read_at(pe->fd, at, coff, sizeof coff) || memcmp(coff, "PE\0\0", 4) != 0) return false;
  pe->section_count = u16(coff + 6);
  uint32_t optional_size = u16(coff + 20);
  pe->sections = at + sizeof coff + optional_size;
  size_t have = optional_size < sizeof optional ? optional_size : sizeof optional;
  if (pe->section_count > MAX_SECTIONS || have < 2 ||
      !read_at(pe->fd, at + sizeof coff, optional, have))
    return false;
  size_t directories = u16(optional) == 0x20B ? 112 : u16(optional) == 0x10B ? 96 : 0;
  if (directories == 0 || have < directories + (DEBUG_DIRECTORY + 1) * 8) return false;
  if (u32(optional + directories - 4) <= DEBUG_DIRECTORY) return true;  // it has no such entry
  pe->debug_rva = u32(optional + directories + DEBUG_DIRECTORY * 8);
  pe->debug_size = u32(optional + directories + DEBUG_DIRECTORY * 8 + 4);
  return true;
}

static bool rva_to_offset(const struct pe *pe, uint32_t rva, uint64_t *offset) {
  for (uint32_t i = 0; i < pe->section_count; i++) {
    uint8_t section[40];
    if (!read_at(pe->fd, pe->sections + i * sizeof section, section, sizeof section)) return false;
    uint32_t address = u32(section + 12), raw_size = u32(section + 16);
    if (rva < address || rva - address >= raw_size) continue;
    *offset = (uint64_t)u32(section + 20) + (rva - address);
    return true;
  }
  return false;
}

// "RSDS", GUID, age, path. The id's last part is the entry's own time stamp.
static void read_codeview(const struct pe *pe, const uint8_t *entry, struct cs_pe_debug *out) {
  uint8_t data[24 + sizeof out->path];
  uint32_t size = u32(entry + 16);
  if (u16(entry + 10) != PORTABLE_MINOR || size < 24) return;
  if (size > sizeof data - 1) size = sizeof data - 1;
  if (!read_at(pe->fd, u32(entry + 24), data, size) || memcmp(data, "RSDS", 4) != 0) return;
  data[size] = '\0';
  memcpy(out->id, data + 4, 16);
  memcpy(out->id + 16, entry + 4, 4);
  memcpy(out->path, data + 24, size - 24 + 1);
  out->has_id = true;
}

static bool inflate_all(uint8_t *in, size_t in_size, uint8_t *out, size_t out_size) {
  z_stream z = {
      .next_in = in, .avail_in = (uInt)in_size, .next_out = out, .avail_out = (uInt)out_size};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return false;
  bool ok = inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_out == 0;
  (void)inflateEnd(&z);
  return ok;
}

// "MPDB", the size it will have, deflated data.
static void read_embedded(const struct pe *pe, const uint8_t *entry, struct cs_pe_debug *out) {
  uint32_t size = u32(entry + 16);
  if (size < 8 || size > MAX_PDB || out->embedded != NULL) return;
  uint8_t *data = malloc(size), *pdb = NULL;
  if (data != NULL && read_at(pe->fd, u32(entry + 24), data, size) &&
      memcmp(data, "MPDB", 4) == 0) {
    uint32_t full = u32(data + 4);
    // Deflate gives 1032 times its input at most: what claims more is not worth the memory.
    if (full > 0 && full <= MAX_PDB && full / 1040 <= size) pdb = malloc(full);
    if (pdb != NULL && inflate_all(data + 8, size - 8, pdb, full)) {
      out->embedded = pdb;
      out->embedded_size = full;
      pdb = NULL;
    }
  }
  free(pdb);
  free(data);
}

bool cs_pe_read_debug(const char *path, struct cs_pe_debug *out) {
  struct pe pe = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat st;
  uint64_t at = 0;
  memset(out, 0, sizeof *out);
  if (pe.fd < 0) return false;
  bool ok = fstat(pe.fd, &st) == 0 && S_ISREG(st.st_mode) && open_pe(&pe);
  uint32_t entries = pe.debug_size / ENTRY_BYTES;
  if (ok && entries > 0 && entries <= MAX_ENTRIES && rva_to_offset(&pe, pe.debug_rva, &at)) {
    for (uint32_t i = 0; i < entries; i++) {
      uint8_t entry[ENTRY_BYTES];
      if (!read_at(pe.fd, at + i * ENTRY_BYTES, entry, sizeof entry)) break;
      if (u32(entry + 12) == CODEVIEW) read_codeview(&pe, entry, out);
      if (u32(entry + 12) == EMBEDDED_PDB) read_embedded(&pe, entry, out);
    }
  }
  (void)close(pe.fd);
  return ok;
}
