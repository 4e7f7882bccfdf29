// SPDX-License-Identifier: MIT
// What the image of a managed module says about its symbols: the id of its portable PDB, the path
// that the compiler wrote it to, and the offset of an embedded PDB. Invariant: every offset is
// checked by the read itself. One thread. Signal-safe: no.
#include <string.h>

#include "base/bytes.h"
#include "pe/pe.h"

enum {
  MAX_ENTRIES = 64,  // of the debug directory
  ENTRY_BYTES = 28,
  CODEVIEW = 2,
  EMBEDDED_PDB = 17,
  PORTABLE_MINOR = 0x504D,  // the minor version of a CodeView entry that names a portable PDB
};

// An entry has both the RVA of its data and its offset in the file.
static uint64_t data_of(const struct cs_pe *pe, const uint8_t *entry) {
  return cs_u32_at(entry + (pe->layout == CS_PE_MAPPED ? 20 : 24));
}

// The data is "RSDS", a GUID, an age and a path. The id is the GUID and the entry's time stamp.
static void read_codeview(const struct cs_pe *pe, const uint8_t *entry, struct cs_pe_debug *out) {
  uint8_t data[24 + sizeof out->path];
  uint32_t size = cs_u32_at(entry + 16);
  if (cs_u16_at(entry + 10) != PORTABLE_MINOR || size < 24) return;
  if (size > sizeof data - 1) size = sizeof data - 1;
  if (!cs_pe_bytes(pe, data_of(pe, entry), data, size) || memcmp(data, "RSDS", 4) != 0) return;
  data[size] = '\0';
  memcpy(out->id, data + 4, 16);
  memcpy(out->id + 16, entry + 4, 4);
  memcpy(out->path, data + 24, size - 24 + 1);
  out->has_id = true;
}

bool cs_pe_read_debug(const struct cs_pe *pe, struct cs_pe_debug *out) {
  uint64_t at;
  uint32_t size;
  memset(out, 0, sizeof *out);
  if (!cs_pe_directory(pe, CS_PE_DEBUG, &at, &size) || size / ENTRY_BYTES > MAX_ENTRIES)
    return false;
  for (uint32_t i = 0; i < size / ENTRY_BYTES; i++) {
    uint8_t entry[ENTRY_BYTES];
    if (!cs_pe_bytes(pe, at + i * ENTRY_BYTES, entry, sizeof entry)) return false;
    if (cs_u32_at(entry + 12) == CODEVIEW) read_codeview(pe, entry, out);
    if (cs_u32_at(entry + 12) != EMBEDDED_PDB || out->embedded_size != 0) continue;
    out->embedded = data_of(pe, entry);
    out->embedded_size = cs_u32_at(entry + 16);
  }
  return true;
}
