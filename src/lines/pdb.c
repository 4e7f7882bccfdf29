// SPDX-License-Identifier: MIT
// A portable PDB, read where it lies: streams, the two tables that lines need (Document and
// MethodDebugInformation), sequence points. Format: docs/specs/PortablePdb-Metadata.md of
// dotnet/runtime, and ECMA-335 II.24. Invariant: no byte is read but through `struct slice`, whose
// cut() and read functions check its end; what does not fit makes a method have no line. One
// thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "lines/lines.h"

struct slice {
  const uint8_t *at;
  size_t left;
};

enum { DOCUMENT = 0x30, METHOD_DEBUG_INFORMATION = 0x31, TABLES = 64 };
enum { WIDE_GUID = 2, WIDE_BLOB = 4 };  // heap size bits
enum { MAX_PATH = 4096 };

struct cs_pdb {
  uint8_t *bytes;
  const uint8_t *id;
  struct slice blob;
  struct slice documents, methods;  // the tables' rows
  uint32_t document_rows, method_rows;
  uint32_t blob_index, guid_index, document_index;  // bytes of an index
  char **names;                                     // of documents, made when first asked for
};

// ---- bytes ----

static bool cut(struct slice *from, size_t size, struct slice *out) {
  if (size > from->left) return false;
  *out = (struct slice){from->at, size};
  from->at += size;
  from->left -= size;
  return true;
}

static bool skip(struct slice *s, size_t size) {
  struct slice passed;
  return cut(s, size, &passed);
}

// Little-endian, of 1 to 8 bytes.
static bool read_number(struct slice *s, size_t size, uint64_t *out) {
  struct slice bytes;
  if (!cut(s, size, &bytes)) return false;
  *out = 0;
  for (size_t i = 0; i < size; i++) *out |= (uint64_t)bytes.at[i] << 8 * i;
  return true;
}

static bool read_u32(struct slice *s, uint32_t *out) {
  uint64_t wide;
  if (!read_number(s, 4, &wide)) return false;
  *out = (uint32_t)wide;
  return true;
}

// ECMA-335 II.23.2: 7, 14 or 29 bits, big-endian. `bits` tells which, for signed numbers.
static bool read_compressed(struct slice *s, uint32_t *out, unsigned *bits) {
  if (s->left == 0) return false;
  uint8_t first = s->at[0];
  size_t size = first < 0x80 ? 1 : first < 0xC0 ? 2 : 4;
  struct slice bytes;
  if (first >= 0xE0 || !cut(s, size, &bytes)) return false;
  uint32_t value = first & (size == 1 ? 0x7Fu : size == 2 ? 0x3Fu : 0x1Fu);
  for (size_t i = 1; i < size; i++) value = value << 8 | bytes.at[i];
  *out = value;
  if (bits != NULL) *bits = size == 1 ? 7 : size == 2 ? 14 : 29;
  return true;
}

static bool read_unsigned(struct slice *s, uint32_t *out) {
  return read_compressed(s, out, NULL);
}

// The sign is the lowest bit, the rest is two's complement without it.
static bool read_signed(struct slice *s, int32_t *out) {
  uint32_t raw;
  unsigned bits;
  if (!read_compressed(s, &raw, &bits)) return false;
  *out = (int32_t)(raw >> 1) - ((raw & 1) != 0 ? (int32_t)1 << (bits - 1) : 0);
  return true;
}

// ---- streams and tables ----

// "BSJB", versions, the version's name (padded to 4), flags, the number of streams.
static bool read_root(struct slice *s, uint32_t *streams) {
  uint32_t magic, name_size;
  uint64_t count;
  if (!read_u32(s, &magic) || magic != 0x424A5342u || !skip(s, 8) || !read_u32(s, &name_size) ||
      !skip(s, ((size_t)name_size + 3) & ~(size_t)3) || !skip(s, 2) || !read_number(s, 2, &count))
    return false;
  *streams = (uint32_t)count;
  return true;
}

// One stream's header: offset from the root, size, and a name padded to 4 bytes.
static bool read_stream(struct slice *s, struct slice file, struct slice *stream, char name[32]) {
  uint32_t offset, size;
  if (!read_u32(s, &offset) || !read_u32(s, &size) || !skip(&file, offset) ||
      !cut(&file, size, stream))
    return false;
  for (size_t i = 0; i < 32; i++) {
    if (i >= s->left) return false;
    name[i] = (char)s->at[i];
    if (name[i] == '\0') return skip(s, (i + 4) & ~(size_t)3);
  }
  return false;
}

// Rows of all tables, in the order of their numbers. Tables of the type system are not in a PDB of
// its own; one with such tables would have to be measured first, and is refused.
static bool read_row_counts(struct slice *s, uint64_t valid, struct cs_pdb *pdb) {
  for (unsigned table = 0; table < TABLES; table++) {
    uint32_t rows;
    if ((valid >> table & 1) == 0) continue;
    if (table < DOCUMENT || !read_u32(s, &rows)) return false;
    if (table == DOCUMENT) pdb->document_rows = rows;
    if (table == METHOD_DEBUG_INFORMATION) pdb->method_rows = rows;
  }
  return true;
}

static bool read_tables(struct slice s, struct cs_pdb *pdb) {
  uint64_t heap_sizes, valid;
  if (!skip(&s, 6) || !read_number(&s, 1, &heap_sizes) || !skip(&s, 1) ||
      !read_number(&s, 8, &valid) || !skip(&s, 8) || !read_row_counts(&s, valid, pdb))
    return false;
  pdb->blob_index = (heap_sizes & WIDE_BLOB) != 0 ? 4 : 2;
  pdb->guid_index = (heap_sizes & WIDE_GUID) != 0 ? 4 : 2;
  pdb->document_index = pdb->document_rows < 0x10000 ? 2 : 4;
  size_t document_size = 2 * (size_t)pdb->blob_index + 2 * (size_t)pdb->guid_index;
  size_t method_size = (size_t)pdb->document_index + pdb->blob_index;
  return cut(&s, document_size * pdb->document_rows, &pdb->documents) &&
         cut(&s, method_size * pdb->method_rows, &pdb->methods);
}

static bool read_all(struct cs_pdb *pdb, struct slice file) {
  struct slice at = file, stream, tables = {NULL, 0};
  uint32_t streams;
  char name[32];
  if (!read_root(&at, &streams)) return false;
  for (uint32_t i = 0; i < streams; i++) {
    if (!read_stream(&at, file, &stream, name)) return false;
    if (strcmp(name, "#Pdb") == 0 && stream.left >= CS_PDB_ID_BYTES) pdb->id = stream.at;
    if (strcmp(name, "#~") == 0) tables = stream;
    if (strcmp(name, "#Blob") == 0) pdb->blob = stream;
  }
  return pdb->id != NULL && read_tables(tables, pdb);
}

struct cs_pdb *cs_pdb_open(uint8_t *bytes, size_t size) {
  struct cs_pdb *pdb = calloc(1, sizeof *pdb);
  if (pdb == NULL) {
    free(bytes);
    return NULL;
  }
  pdb->bytes = bytes;
  bool ok = read_all(pdb, (struct slice){bytes, size});
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

static bool read_blob(const struct cs_pdb *pdb, uint64_t offset, struct slice *out) {
  struct slice s = pdb->blob;
  uint32_t size;
  return offset <= s.left && skip(&s, (size_t)offset) && read_unsigned(&s, &size) &&
         cut(&s, size, out);
}

// ---- documents ----

// A document's name: a separator, and the blobs of the parts that it stands between.
static bool write_name(const struct cs_pdb *pdb, struct slice blob, char out[MAX_PATH]) {
  uint64_t separator;
  size_t len = 0;
  if (!read_number(&blob, 1, &separator) || separator >= 0x80) return false;
  for (bool first = true; blob.left > 0; first = false) {
    uint32_t offset;
    struct slice part = {NULL, 0};
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
  struct slice rows = pdb->documents, blob;
  size_t row_size = 2 * (size_t)pdb->blob_index + 2 * (size_t)pdb->guid_index;
  uint64_t offset;
  if (document == 0 || document > pdb->document_rows) return NULL;
  if (pdb->names[document] != NULL) return pdb->names[document];
  if (!skip(&rows, (document - 1) * row_size) || !read_number(&rows, pdb->blob_index, &offset) ||
      !read_blob(pdb, offset, &blob) || !write_name(pdb, blob, name))
    return NULL;
  return pdb->names[document] = strdup(name);
}

// ---- sequence points ----

struct points {
  struct slice blob;
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
static bool read_span(struct slice *s, bool *visible) {
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

// Where it starts: the first visible point says it, the others say how far they are from it.
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
  struct slice rows = pdb->methods;
  uint32_t row = method & 0xFFFFFFu, local_signature;
  uint64_t document, offset;
  size_t row_size = (size_t)pdb->document_index + pdb->blob_index;
  if (method >> 24 != 6 || row == 0 || row > pdb->method_rows) return false;
  if (!skip(&rows, (row - 1) * row_size) || !read_number(&rows, pdb->document_index, &document) ||
      !read_number(&rows, pdb->blob_index, &offset) || offset == 0)
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
