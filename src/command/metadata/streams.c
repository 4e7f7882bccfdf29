// SPDX-License-Identifier: MIT
// Metadata's root and its streams (ECMA-335 II.24.2): of a module, or of a portable PDB, which is
// metadata of its own. Invariant: as slice.h. Any thread. Signal-safe: no.
#include <string.h>

#include "metadata/metadata.h"

// "BSJB", versions, the version's name (padded to 4), flags, the number of streams.
static bool read_root(struct cs_slice *s, uint32_t *streams) {
  uint32_t magic, name_size;
  uint64_t count;
  if (!cs_slice_u32(s, &magic) || magic != 0x424A5342u || !cs_slice_skip(s, 8) ||
      !cs_slice_u32(s, &name_size) || !cs_slice_skip(s, ((size_t)name_size + 3) & ~(size_t)3) ||
      !cs_slice_skip(s, 2) || !cs_slice_number(s, 2, &count))
    return false;
  *streams = (uint32_t)count;
  return true;
}

// One stream's header: offset from the root, size, and a name padded to 4 bytes.
static bool read_stream(struct cs_slice *s, struct cs_slice root, struct cs_slice *stream,
                        char name[32]) {
  uint32_t offset, size;
  if (!cs_slice_u32(s, &offset) || !cs_slice_u32(s, &size) || !cs_slice_skip(&root, offset) ||
      !cs_slice_cut(&root, size, stream))
    return false;
  for (size_t i = 0; i < 32; i++) {
    if (i >= s->left) return false;
    name[i] = (char)s->at[i];
    if (name[i] == '\0') return cs_slice_skip(s, (i + 4) & ~(size_t)3);
  }
  return false;
}

bool cs_metadata_stream(struct cs_slice root, const char *wanted, struct cs_slice *out) {
  struct cs_slice at = root;
  uint32_t streams;
  char name[32];
  if (!read_root(&at, &streams)) return false;
  for (uint32_t i = 0; i < streams; i++) {
    if (!read_stream(&at, root, out, name)) return false;
    if (strcmp(name, wanted) == 0) return true;
  }
  return false;
}

bool cs_slice_compressed(struct cs_slice *s, uint32_t *out, unsigned *bits) {
  if (s->left == 0) return false;
  uint8_t first = s->at[0];
  size_t size = first < 0x80 ? 1 : first < 0xC0 ? 2 : 4;
  struct cs_slice bytes;
  if (first >= 0xE0 || !cs_slice_cut(s, size, &bytes)) return false;
  uint32_t value = first & (size == 1 ? 0x7Fu : size == 2 ? 0x3Fu : 0x1Fu);
  for (size_t i = 1; i < size; i++) value = value << 8 | bytes.at[i];
  *out = value;
  if (bits != NULL) *bits = size == 1 ? 7 : size == 2 ? 14 : 29;
  return true;
}
