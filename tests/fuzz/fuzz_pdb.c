// SPDX-License-Identifier: MIT
// A portable PDB: documents and sequence points.
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "metadata/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *bytes = malloc(size > 0 ? size : 1);
  struct cs_line line;
  if (bytes == NULL) return 0;
  if (size > 0) memcpy(bytes, data, size);
  struct cs_pdb *pdb = cs_pdb_open(bytes, size);
  if (pdb == NULL) return 0;
  for (uint32_t rid = 0; rid < 64; rid++) (void)cs_pdb_find(pdb, 0x06000000u + rid, rid * 3, &line);
  cs_pdb_free(pdb);
  return 0;
}
