// SPDX-License-Identifier: MIT
// What a managed module's file (PE) says of its symbols: the id of its portable PDB, where the
// compiler has put it, and the PDB itself where it is embedded. Invariant: every offset is checked
// against the file's size by the read itself; sizes that come from the file are bounded before
// memory is taken for them. One thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "lines/lines.h"
#include "metadata/metadata.h"

enum {
  MAX_ENTRIES = 64,  // of the debug directory
  ENTRY_BYTES = 28,
  CODEVIEW = 2,
  EMBEDDED_PDB = 17,
  PORTABLE_MINOR = 0x504D,  // of a CodeView entry: it names a portable PDB
  MAX_PDB = 256 << 20,
};

static uint32_t u16(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}
static uint32_t u32(const uint8_t *at) {
  return u16(at) | u16(at + 2) << 16;
}

// "RSDS", GUID, age, path. The id's last part is the entry's own time stamp.
static void read_codeview(const struct cs_pe *pe, const uint8_t *entry, struct cs_pe_debug *out) {
  uint8_t data[24 + sizeof out->path];
  uint32_t size = u32(entry + 16);
  if (u16(entry + 10) != PORTABLE_MINOR || size < 24) return;
  if (size > sizeof data - 1) size = sizeof data - 1;
  if (!cs_pe_bytes(pe, u32(entry + 24), data, size) || memcmp(data, "RSDS", 4) != 0) return;
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
static void read_embedded(const struct cs_pe *pe, const uint8_t *entry, struct cs_pe_debug *out) {
  uint32_t size = u32(entry + 16);
  if (size < 8 || size > MAX_PDB || out->embedded != NULL) return;
  uint8_t *data = malloc(size), *pdb = NULL;
  if (data != NULL && cs_pe_bytes(pe, u32(entry + 24), data, size) &&
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
  struct cs_pe pe;
  uint64_t at;
  uint32_t size;
  memset(out, 0, sizeof *out);
  if (!cs_pe_open(&pe, path)) return false;
  if (cs_pe_directory(&pe, CS_PE_DEBUG, &at, &size) && size / ENTRY_BYTES <= MAX_ENTRIES) {
    for (uint32_t i = 0; i < size / ENTRY_BYTES; i++) {
      uint8_t entry[ENTRY_BYTES];
      if (!cs_pe_bytes(&pe, at + i * ENTRY_BYTES, entry, sizeof entry)) break;
      if (u32(entry + 12) == CODEVIEW) read_codeview(&pe, entry, out);
      if (u32(entry + 12) == EMBEDDED_PDB) read_embedded(&pe, entry, out);
    }
  }
  cs_pe_close(&pe);
  return true;
}
