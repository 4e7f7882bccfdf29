// SPDX-License-Identifier: MIT
// Metadata's tables. They follow each other without their sizes, so finding one takes the sizes of
// the rows of all before it, which `columns` describes. Invariant: a table whose rows would go
// beyond the stream makes the module unreadable; nothing is guessed. Any thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "metadata/metadata.h"

enum { MAX_METADATA = 512 << 20 };

// The columns of each table, a letter each: 2, 4: a number of that many bytes; s, g, b: an index
// into #Strings, #GUID, #Blob; capital letters: an index into a table, or a coded index into one of
// several (II.24.2.6), as in `kinds` below.
static const char *const columns[] = {
    [0x00] = "2sggg",
    [0x01] = "Rss",
    [0x02] = "4ssDFM",
    [0x03] = "F",
    [0x04] = "2sb",
    [0x05] = "M",
    [0x06] = "422sbP",
    [0x07] = "P",
    [0x08] = "22s",
    [0x09] = "TD",
    [0x0A] = "Esb",
    [0x0B] = "2Cb",
    [0x0C] = "AYb",
    [0x0D] = "Lb",
    [0x0E] = "2Ub",
    [0x0F] = "24T",
    [0x10] = "4F",
    [0x11] = "b",
    [0x12] = "TV",
    [0x13] = "V",
    [0x14] = "2sD",
    [0x15] = "TW",
    [0x16] = "W",
    [0x17] = "2sb",
    [0x18] = "2MH",
    [0x19] = "TNN",
    [0x1A] = "s",
    [0x1B] = "b",
    [0x1C] = "2OsX",
    [0x1D] = "4F",
    [0x1E] = "44",
    [0x1F] = "4",
    [0x20] =
        "42222"
        "4bss",
    [0x21] = "4",
    [0x22] = "444",
    [0x23] = "22224bssb",
    [0x24] = "4I",
    [0x25] = "444I",
    [0x26] = "4sb",
    [0x27] = "44ssJ",
    [0x28] = "44sJ",
    [0x29] = "TT",
    [0x2A] = "22Gs",
    [0x2B] = "Nb",
    [0x2C] = "KD",
    // Of portable PDBs.
    [0x30] = "bgbg",
    [0x31] = "Qb",
    [0x32] = "MSBZ44",
    [0x33] = "22s",
    [0x34] = "sb",
    [0x35] = "Sb",
    [0x36] = "MM",
    [0x37] = "*gb",
};

// A letter's tables and the number of tag bits; none: a plain index.
static const struct kind {
  char letter;
  uint8_t bits;
  uint8_t count;
  uint8_t table[27];
} kinds[] = {
    {'T', 0, 1, {0x02}},
    {'F', 0, 1, {0x04}},
    {'M', 0, 1, {0x06}},
    {'P', 0, 1, {0x08}},
    {'V', 0, 1, {0x14}},
    {'W', 0, 1, {0x17}},
    {'X', 0, 1, {0x1A}},
    {'I', 0, 1, {0x23}},
    {'K', 0, 1, {0x2A}},
    {'Q', 0, 1, {0x30}},
    {'B', 0, 1, {0x33}},
    {'Z', 0, 1, {0x34}},
    {'S', 0, 1, {0x35}},
    {'D', 2, 3, {0x02, 0x01, 0x1B}},  // TypeDefOrRef
    {'C', 2, 3, {0x04, 0x08, 0x17}},  // HasConstant
    {'A', 5, 22, {0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0A, 0x00, 0x0E, 0x17, 0x14,
                  0x11, 0x1A, 0x1B, 0x20, 0x23, 0x26, 0x27, 0x28, 0x2A, 0x2C, 0x2B}},
    {'L', 1, 2, {0x04, 0x08}},                    // HasFieldMarshal
    {'U', 2, 3, {0x02, 0x06, 0x20}},              // HasDeclSecurity
    {'E', 3, 5, {0x02, 0x01, 0x1A, 0x06, 0x1B}},  // MemberRefParent
    {'H', 1, 2, {0x14, 0x17}},                    // HasSemantics
    {'N', 1, 2, {0x06, 0x0A}},                    // MethodDefOrRef
    {'O', 1, 2, {0x04, 0x06}},                    // MemberForwarded
    {'J', 2, 3, {0x26, 0x23, 0x27}},              // Implementation
    {'Y', 3, 2, {0x06, 0x0A}},                    // CustomAttributeType
    {'R', 2, 4, {0x00, 0x1A, 0x23, 0x01}},        // ResolutionScope
    {'G', 1, 2, {0x02, 0x06}},                    // TypeOrMethodDef
    {'*',
     5,
     27,
     {0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0A, 0x00, 0x0E, 0x17, 0x14, 0x11,
      0x1A, 0x1B, 0x20, 0x23, 0x26, 0x27, 0x28, 0x2A, 0x2C, 0x2B,  // HasCustomDebugInformation
      0x30, 0x32, 0x33, 0x34, 0x35}},
};

static uint8_t index_size(const struct cs_metadata *m, char letter) {
  for (size_t i = 0; i < CS_COUNT(kinds); i++) {
    const struct kind *kind = &kinds[i];
    uint32_t most = 0;
    if (kind->letter != letter) continue;
    for (unsigned k = 0; k < kind->count; k++)
      if (m->rows[kind->table[k]] > most) most = m->rows[kind->table[k]];
    return most < (uint32_t)1 << (16 - kind->bits) ? 2 : 4;
  }
  return 0;
}

static uint8_t column_size(const struct cs_metadata *m, char letter) {
  switch (letter) {
    case '2':
      return 2;
    case '4':
      return 4;
    case 's':
      return m->wide_strings ? 4 : 2;
    case 'g':
      return m->wide_guids ? 4 : 2;
    case 'b':
      return m->wide_blobs ? 4 : 2;
    default:
      return index_size(m, letter);
  }
}

// Returns false if an unknown table precedes those that are needed. Tables after an unknown one
// have no row size, and are not read.
static bool measure(struct cs_metadata *m, uint64_t valid) {
  for (unsigned table = 0; table < CS_TABLES; table++) {
    if ((valid >> table & 1) == 0) continue;
    if (table >= CS_COUNT(columns) || columns[table] == NULL) return table > CS_TABLE_GENERIC_PARAM;
    for (unsigned c = 0; columns[table][c] != '\0'; c++) {
      m->column_size[table][c] = column_size(m, columns[table][c]);
      m->row_size[table] += m->column_size[table][c];
    }
  }
  return true;
}

bool cs_metadata_tables(struct cs_metadata *m, struct cs_slice s, uint64_t *valid) {
  enum { STRINGS = 1, GUIDS = 2, BLOBS = 4, EXTRA = 0x40 };
  uint64_t heaps;
  if (!cs_slice_skip(&s, 6) || !cs_slice_number(&s, 1, &heaps) || !cs_slice_skip(&s, 1) ||
      !cs_slice_number(&s, 8, valid) || !cs_slice_skip(&s, 8))
    return false;
  m->wide_strings = (heaps & STRINGS) != 0;
  m->wide_guids = (heaps & GUIDS) != 0;
  m->wide_blobs = (heaps & BLOBS) != 0;
  for (unsigned table = 0; table < CS_TABLES; table++)
    if ((*valid >> table & 1) != 0 && !cs_slice_u32(&s, &m->rows[table])) return false;
  if (((heaps & EXTRA) != 0 && !cs_slice_skip(&s, 4)) || !measure(m, *valid)) return false;
  for (unsigned table = 0; table < CS_TABLES; table++)
    if (!cs_slice_cut(&s, (size_t)m->rows[table] * m->row_size[table], &m->table[table]))
      return false;
  return true;
}

static bool read_all(const struct cs_pe *pe, struct cs_metadata *m, size_t *size) {
  uint64_t offset;
  uint32_t length;
  if (!cs_pe_metadata(pe, &offset, &length) || length > MAX_METADATA ||
      (m->bytes = malloc(length + 1u)) == NULL)
    return false;
  *size = length;
  return cs_pe_bytes(pe, offset, m->bytes, length);
}

struct cs_metadata *cs_metadata_read(const struct cs_pe *pe) {
  struct cs_metadata *m = calloc(1, sizeof *m);
  struct cs_slice tables;
  size_t size = 0;
  uint64_t valid;
  if (m == NULL) return NULL;
  bool ok = read_all(pe, m, &size);
  struct cs_slice root = {m->bytes, size};
  if (ok) (void)cs_metadata_stream(root, "#Blob", &m->blobs);
  if (ok && cs_metadata_stream(root, "#Strings", &m->strings) &&
      cs_metadata_stream(root, "#~", &tables) && cs_metadata_tables(m, tables, &valid))
    return m;
  cs_metadata_free(m);
  return NULL;
}

void cs_metadata_free(struct cs_metadata *metadata) {
  if (metadata != NULL) free(metadata->bytes);
  free(metadata);
}

bool cs_metadata_cell(const struct cs_metadata *m, enum cs_table table, uint32_t row,
                      unsigned column, uint32_t *value) {
  struct cs_slice s = m->table[table];
  uint64_t wide;
  if (row == 0 || row > m->rows[table] || m->row_size[table] == 0 ||
      !cs_slice_skip(&s, (row - 1) * (size_t)m->row_size[table]))
    return false;
  for (unsigned c = 0; c < column; c++)
    if (!cs_slice_skip(&s, m->column_size[table][c])) return false;
  if (!cs_slice_number(&s, m->column_size[table][column], &wide)) return false;
  *value = (uint32_t)wide;
  return true;
}

uint32_t cs_metadata_last_row(const struct cs_metadata *m, enum cs_table table, unsigned column,
                              uint32_t value) {
  uint32_t low = 0, high = m->rows[table], found;
  while (low < high) {
    uint32_t middle = low + (high - low + 1) / 2;
    if (!cs_metadata_cell(m, table, middle, column, &found)) return 0;
    if (found <= value)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

const char *cs_metadata_string(const struct cs_metadata *m, uint32_t offset) {
  struct cs_slice s = m->strings;
  if (!cs_slice_skip(&s, offset) || memchr(s.at, '\0', s.left) == NULL) return NULL;
  return (const char *)s.at;
}
