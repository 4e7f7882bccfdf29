// SPDX-License-Identifier: MIT
// The module's own name. Invariant: as in metadata.h. Any thread. Signal-safe: no.
#include "metadata/metadata.h"

const char *cs_metadata_module_name(const struct cs_metadata *m) {
  enum { NAME = 1 };
  uint32_t offset;
  if (!cs_metadata_cell(m, CS_TABLE_MODULE, 1, NAME, &offset)) return NULL;
  return cs_metadata_string(m, offset);
}
