// SPDX-License-Identifier: MIT
// A portable PDB, read in place: streams, the two tables that lines need (Document and
// MethodDebugInformation), sequence points. Format: docs/specs/PortablePdb-Metadata.md of
// dotnet/runtime, and ECMA-335 II.24. Invariant: every byte is read through `struct cs_slice`,
// whose functions check its end; a method whose data do not fit has no line. One thread.
// Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "metadata/lines.h"
#include "metadata/metadata.h"

enum { DOCUMENT = 0x30, METHOD_DEBUG_INFORMATION = 0x31, TABLES = 64 };
enum { WIDE_GUID = 2, WIDE_BLOB = 4 };  // heap size bits
enum { MAX_PATH = 4096 };

struct cs_pdb {
  uint8_t *bytes;
  const uint8_t *id;
  struct cs_slice blob;
  struct cs_slice documents, methods;  // the tables' rows
  uint32_t document_rows, method_rows;
  uint32_t blob_index, guid_index, document_index;  // bytes of an index
  char **names;                                     // of documents, made when first asked for
};

// ---- bytes ----

// ECMA-335 II.23.2: 7, 14 or 29 bits, big-endian. `bits` is set to the width, for signed numbers.
static bool read_compressed(struct cs_slice *s, uint32_t *out, unsigned *bits) {
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

static bool read_unsigned(struct cs_slice *s, uint32_t *out) {
  return read_compressed(s, out, NULL);
}

// The sign is the lowest bit, the rest is two's complement without it.
static bool read_signed(struct cs_slice *s, int32_t *out) {
  uint32_t raw;
  unsigned bits;
  if (!read_compressed(s, &raw, &bits)) return false;
  *out = (int32_t)(raw >> 1) - ((raw & 1) != 0 ? (int32_t)1 << (bits - 1) : 0);
  return true;
}

// ---- streams and tables ----

// The rows of all tables, in the order of their numbers. A stand-alone PDB has no tables of the
// type system; one with such tables, whose size would be needed, is refused.
static bool read_row_counts(struct cs_slice *s, uint64_t valid, struct cs_pdb *pdb) {
  for (unsigned table = 0; table < TABLES; table++) {
    uint32_t rows;
    if ((valid >> table & 1) == 0) continue;
    if (table < DOCUMENT || !cs_slice_u32(s, &rows)) return false;
    if (table == DOCUMENT) pdb->document_rows = rows;
    if (table == METHOD_DEBUG_INFORMATION) pdb->method_rows = rows;
  }
  return true;
}

static bool read_tables(struct cs_slice s, struct cs_pdb *pdb) {
  uint64_t heap_sizes, valid;
  if (!cs_slice_skip(&s, 6) || !cs_slice_number(&s, 1, &heap_sizes) || !cs_slice_skip(&s, 1) ||
      !cs_slice_number(&s, 8, &valid) || !cs_slice_skip(&s, 8) || !read_row_counts(&s, valid, pdb))
    return false;
  pdb->blob_index = (heap_sizes & WIDE_BLOB) != 0 ? 4 : 2;
  pdb->guid_index = (heap_sizes & WIDE_GUID) != 0 ? 4 : 2;
  pdb->document_index = pdb->document_rows < 0x10000 ? 2 : 4;
  size_t document_size = 2 * (size_t)pdb->blob_index + 2 * (size_t)pdb->guid_index;
  size_t method_size = (size_t)pdb->document_index + pdb->blob_index;
  return cs_slice_cut(&s, document_size * pdb->document_rows, &pdb->documents) &&
         cs_slice_cut(&s, method_size * pdb->method_rows, &pdb->methods);
}

static bool read_all(struct cs_pdb *pdb, struct cs_slice file) {
  struct cs_slice id, tables;
  if (!cs_metadata_stream(file, "#Pdb", &id) || id.left < CS_PDB_ID_BYTES ||
      !cs_metadata_stream(file, "#~", &tables) || !cs_metadata_stream(file, "#Blob", &pdb->blob))
    return false;
  pdb->id = id.at;
  return read_tables(tables, pdb);
}

struct cs_pdb *cs_pdb_open(uint8_t *bytes, size_t size) {
  struct cs_pdb *pdb = calloc(1, sizeof *pdb);
  if (pdb == NULL) {
    free(bytes);
    return NULL;
  }
  pdb->bytes = bytes;
  bool ok = read_all(pdb, (struct cs_slice){bytes, size});
  if (ok) pdb->names = calloc((size_t)pdb->document_rows + 1, sizeof *pdb->names);
  if (ok && pdb->names != NULL) return pdb;
  cs_pdb_free(pdb);
  return NULL;
}

void cs_pdb_free(struct cs_pdb *pdb) {
  if (pdb == NULL) return;
  for (uint32_t i = 0; pdb->names != NULL && i <= pdb->document_rows; i++) free(pdb->names[i]);
  free(pdb->names);
  free(pdb->bytes);
  free(pdb);
}

const uint8_t *cs_pdb_id(const struct cs_pdb *pdb) {
  return pdb->id;
}

static bool read_blob(const struct cs_pdb *pdb, uint64_t offset, struct cs_slice *out) {
  struct cs_slice s = pdb->blob;
  uint32_t size;
  return offset <= s.left && cs_slice_skip(&s, (size_t)offset) && read_unsigned(&s, &size) &&
         cs_slice_cut(&s, size, out);
}

// ---- documents ----

// A document's name: a separator, and the blobs of the parts that it joins.
static bool write_name(const struct cs_pdb *pdb, struct cs_slice blob, char out[MAX_PATH]) {
  uint64_t separator;
  size_t len = 0;
  if (!cs_slice_number(&blob, 1, &separator) || separator >= 0x80) return false;
  for (bool first = true; blob.left > 0; first = false) {
    uint32_t offset;
    struct cs_slice part = {NULL, 0};
    if (!read_unsigned(&blob, &offset) || (offset != 0 && !read_blob(pdb, offset, &part)) ||
        len + 1 + part.left >= MAX_PATH || (part.left > 0 && memchr(part.at, 0, part.left) != NULL))
      return false;
    if (!first && separator != 0) out[len++] = (char)separator;
    if (part.left > 0) memcpy(out + len, part.at, part.left);
    len += part.left;
  }
  out[len] = '\0';
  return len > 0;
}

static const char *document_name(struct cs_pdb *pdb, uint32_t document) {
  char name[MAX_PATH];
  struct cs_slice rows = pdb->documents, blob;
  size_t row_size = 2 * (size_t)pdb->blob_index + 2 * (size_t)pdb->guid_index;
  uint64_t offset;
  if (document == 0 || document > pdb->document_rows) return NULL;
  if (pdb->names[document] != NULL) return pdb->names[document];
  if (!cs_slice_skip(&rows, (document - 1) * row_size) ||
      !cs_slice_number(&rows, pdb->blob_index, &offset) || !read_blob(pdb, offset, &blob) ||
      !write_name(pdb, blob, name))
    return NULL;
  return pdb->names[document] = strdup(name);
}

// ---- sequence points ----

struct points {
  struct cs_slice blob;
  uint32_t document, il;
  int64_t line;  // of the last visible point
  bool begun, any_visible;
};

struct point {
  uint32_t il, document;
  int64_t line;
  bool visible;
};

// Lines and columns that a point spans: both 0 means hidden.
static bool read_span(struct cs_slice *s, bool *visible) {
  uint32_t lines, columns;
  int32_t signed_columns;
  if (!read_unsigned(s, &lines)) return false;
  if (lines != 0) {
    *visible = true;
    return read_signed(s, &signed_columns);
  }
  if (!read_unsigned(s, &columns)) return false;
  *visible = columns != 0;
  return true;
}

// Where a point starts: the first visible one is absolute, the others are relative to the previous
// visible one.
static bool read_start(struct points *p) {
  uint32_t line, column;
  int32_t delta, signed_column;
  if (!p->any_visible) {
    if (!read_unsigned(&p->blob, &line) || !read_unsigned(&p->blob, &column)) return false;
    p->line = line;
    p->any_visible = true;
    return true;
  }
  if (!read_signed(&p->blob, &delta) || !read_signed(&p->blob, &signed_column)) return false;
  p->line += delta;
  return p->line >= 0 && p->line <= UINT32_MAX;
}

static bool next_point(struct points *p, struct point *out) {
  uint32_t delta;
  while (p->blob.left > 0) {
    if (!read_unsigned(&p->blob, &delta)) return false;
    if (p->begun && delta == 0) {  // a change of document
      if (!read_unsigned(&p->blob, &p->document)) return false;
      continue;
    }
    if (delta > UINT32_MAX - p->il) return false;
    p->il += delta;
    p->begun = true;
    if (!read_span(&p->blob, &out->visible) || (out->visible && !read_start(p))) return false;
    out->il = p->il;
    out->document = p->document;
    out->line = p->line;
    return true;
  }
  return false;
}

static bool open_points(const struct cs_pdb *pdb, uint32_t method, struct points *p) {
  struct cs_slice rows = pdb->methods;
  uint32_t row = method & 0xFFFFFFu, local_signature;
  uint64_t document, offset;
  size_t row_size = (size_t)pdb->document_index + pdb->blob_index;
  if (method >> 24 != 6 || row == 0 || row > pdb->method_rows) return false;
  if (!cs_slice_skip(&rows, (row - 1) * row_size) ||
      !cs_slice_number(&rows, pdb->document_index, &document) ||
      !cs_slice_number(&rows, pdb->blob_index, &offset) || offset == 0)
    return false;
  *p = (struct points){.document = (uint32_t)document};
  return read_blob(pdb, offset, &p->blob) && read_unsigned(&p->blob, &local_signature) &&
         (document != 0 || read_unsigned(&p->blob, &p->document));
}

bool cs_pdb_find(struct cs_pdb *pdb, uint32_t method, uint32_t il, struct cs_line *out) {
  struct points points;
  struct point point, best = {.visible = false};
  if (!open_points(pdb, method, &points)) return false;
  while (next_point(&points, &point)) {
    if (point.il > il && best.visible) break;
    if (point.visible) best = point;
  }
  if (!best.visible) return false;
  out->line = (uint32_t)best.line;
  out->file = document_name(pdb, best.document);
  return out->file != NULL;
}
