// SPDX-License-Identifier: MIT
// A PDB that is embedded in its module's image. Invariant: sizes from the image are bounded before
// memory is allocated for them. One thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "metadata/lines.h"

enum { MAX_PDB = 256 << 20 };

static bool inflate_all(uint8_t *in, size_t in_size, uint8_t *out, size_t out_size) {
  z_stream z = {
      .next_in = in, .avail_in = (uInt)in_size, .next_out = out, .avail_out = (uInt)out_size};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return false;
  bool ok = inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_out == 0;
  (void)inflateEnd(&z);
  return ok;
}

// "MPDB", the inflated size, deflated data.
uint8_t *cs_lines_embedded(const struct cs_pe *pe, const struct cs_pe_debug *debug, size_t *size) {
  uint32_t packed = debug->embedded_size;
  if (packed < 8 || packed > MAX_PDB) return NULL;
  uint8_t *data = malloc(packed), *pdb = NULL;
  if (data != NULL && cs_pe_bytes(pe, debug->embedded, data, packed) &&
      memcmp(data, "MPDB", 4) == 0) {
    uint32_t full = cs_u32_at(data + 4);
    // Deflate expands by a factor of 1032 at most, so a larger size is a false one.
    if (full > 0 && full <= MAX_PDB && full / 1040 <= packed) pdb = malloc(full);
    if (pdb != NULL && !inflate_all(data + 8, packed - 8, pdb, full)) {
      free(pdb);
      pdb = NULL;
    }
    *size = full;
  }
  free(data);
  return pdb;
}
