// SPDX-License-Identifier: MIT
// A portable PDB, read in place: streams, the three tables that lines need (Document,
// MethodDebugInformation, CustomDebugInformation), sequence points. Format:
// docs/specs/PortablePdb-Metadata.md of dotnet/runtime, and ECMA-335 II.24. Invariants: every byte
// is read through `struct cs_slice`, whose functions check its end; a method whose data do not fit
// has no line; code that the compiler has marked as hidden does not get the line of the code before
// it. One thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "metadata/lines.h"
#include "metadata/metadata.h"

enum { MAX_PATH = 4096, MOST_INFORMATION = 64 };
// Columns.
enum { DOCUMENT_NAME = 0, METHOD_DOCUMENT = 0, METHOD_POINTS = 1 };
enum { PARENT = 0, KIND = 1, VALUE = 2 };

struct cs_pdb {
  uint8_t *bytes;
  const uint8_t *id;
  struct cs_slice blob, guid;
  struct cs_metadata tables;
  char **names;  // of documents, made when first asked for
};

// ---- bytes ----

static bool read_unsigned(struct cs_slice *s, uint32_t *out) {
  return cs_slice_compressed(s, out, NULL);
}

// The sign is the lowest bit, the rest is two's complement without it.
static bool read_signed(struct cs_slice *s, int32_t *out) {
  uint32_t raw;
  unsigned bits;
  if (!cs_slice_compressed(s, &raw, &bits)) return false;
  *out = (int32_t)(raw >> 1) - ((raw & 1) != 0 ? (int32_t)1 << (bits - 1) : 0);
  return true;
}

// ---- streams and tables ----

// The id, the entry point, and the numbers of rows of the module's own tables. A PDB that contains
// such tables itself is refused.
static bool read_head(struct cs_pdb *pdb, struct cs_slice s) {
  uint64_t module_tables;
  pdb->id = s.at;
  if (!cs_slice_skip(&s, CS_PDB_ID_BYTES + 4) || !cs_slice_number(&s, 8, &module_tables))
    return false;
  for (unsigned table = 0; table < CS_TABLE_DOCUMENT; table++)
    if ((module_tables >> table & 1) != 0 && !cs_slice_u32(&s, &pdb->tables.rows[table]))
      return false;
  return true;
}

static bool read_all(struct cs_pdb *pdb, struct cs_slice file) {
  struct cs_slice head, tables;
  uint64_t valid;
  (void)cs_metadata_stream(file, "#GUID", &pdb->guid);
  return cs_metadata_stream(file, "#Pdb", &head) && read_head(pdb, head) &&
         cs_metadata_stream(file, "#~", &tables) && cs_metadata_stream(file, "#Blob", &pdb->blob) &&
         cs_metadata_tables(&pdb->tables, tables, &valid) &&
         (valid & ((1ull << CS_TABLE_DOCUMENT) - 1)) == 0;
}

static uint32_t document_rows(const struct cs_pdb *pdb) {
  return pdb->tables.rows[CS_TABLE_DOCUMENT];
}

struct cs_pdb *cs_pdb_open(uint8_t *bytes, size_t size) {
  struct cs_pdb *pdb = calloc(1, sizeof *pdb);
  if (pdb == NULL) {
    free(bytes);
    return NULL;
  }
  pdb->bytes = bytes;
  bool ok = read_all(pdb, (struct cs_slice){bytes, size});
  if (ok) pdb->names = calloc((size_t)document_rows(pdb) + 1, sizeof *pdb->names);
  if (ok && pdb->names != NULL) return pdb;
  cs_pdb_free(pdb);
  return NULL;
}

void cs_pdb_free(struct cs_pdb *pdb) {
  if (pdb == NULL) return;
  for (uint32_t i = 0; pdb->names != NULL && i <= document_rows(pdb); i++) free(pdb->names[i]);
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
  struct cs_slice blob;
  uint32_t offset;
  if (document == 0 || document > document_rows(pdb)) return NULL;
  if (pdb->names[document] != NULL) return pdb->names[document];
  if (!cs_metadata_cell(&pdb->tables, CS_TABLE_DOCUMENT, document, DOCUMENT_NAME, &offset) ||
      !read_blob(pdb, offset, &blob) || !write_name(pdb, blob, name))
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

static bool open_points(const struct cs_pdb *pdb, uint32_t row, struct points *p) {
  uint32_t local_signature, document, offset;
  if (!cs_metadata_cell(&pdb->tables, CS_TABLE_METHOD_DEBUG_INFORMATION, row, METHOD_DOCUMENT,
                        &document) ||
      !cs_metadata_cell(&pdb->tables, CS_TABLE_METHOD_DEBUG_INFORMATION, row, METHOD_POINTS,
                        &offset) ||
      offset == 0)
    return false;
  *p = (struct points){.document = document};
  return read_blob(pdb, offset, &p->blob) && read_unsigned(&p->blob, &local_signature) &&
         (document != 0 || read_unsigned(&p->blob, &p->document));
}

// ---- awaits ----

// Returns whether a row has the places of a method's awaits, by the kind's GUID.
static bool is_stepping(const struct cs_pdb *pdb, uint32_t row) {
  static const uint8_t wanted[16] = {0xC5, 0x2A, 0xFD, 0x54, 0x25, 0xE9, 0x1A, 0x40,
                                     0x9C, 0x2A, 0xF9, 0x4F, 0x17, 0x10, 0x72, 0xF8};
  struct cs_slice guids = pdb->guid, guid;
  uint32_t index;
  return cs_metadata_cell(&pdb->tables, CS_TABLE_CUSTOM_DEBUG_INFORMATION, row, KIND, &index) &&
         index > 0 && cs_slice_skip(&guids, (size_t)(index - 1) * sizeof wanted) &&
         cs_slice_cut(&guids, sizeof wanted, &guid) && memcmp(guid.at, wanted, sizeof wanted) == 0;
}

// What the compiler says of a method's awaits: a list of places. Empty: the method has none.
static struct cs_slice find_awaits(const struct cs_pdb *pdb, uint32_t method) {
  enum { METHOD_DEF = 0, TAG_BITS = 5, CATCH_BYTES = 4 };
  uint32_t owner = method << TAG_BITS | METHOD_DEF, found, offset;
  uint32_t row =
      cs_metadata_last_row(&pdb->tables, CS_TABLE_CUSTOM_DEBUG_INFORMATION, PARENT, owner);
  for (uint32_t i = 0; i < MOST_INFORMATION && row > 0; i++, row--) {
    struct cs_slice value;
    if (!cs_metadata_cell(&pdb->tables, CS_TABLE_CUSTOM_DEBUG_INFORMATION, row, PARENT, &found) ||
        found != owner)
      break;
    if (is_stepping(pdb, row) &&
        cs_metadata_cell(&pdb->tables, CS_TABLE_CUSTOM_DEBUG_INFORMATION, row, VALUE, &offset) &&
        read_blob(pdb, offset, &value) && cs_slice_skip(&value, CATCH_BYTES))
      return value;
  }
  return (struct cs_slice){NULL, 0};
}

// Returns whether a method returns to its caller, to await something, within these offsets.
static bool awaits_within(struct cs_slice awaits, uint32_t begin, uint32_t end) {
  uint32_t yields, resumes, method;
  while (cs_slice_u32(&awaits, &yields) && cs_slice_u32(&awaits, &resumes) &&
         read_unsigned(&awaits, &method))
    if (yields >= begin && yields < end) return true;
  return false;
}

// ---- lines ----

// The point that an offset belongs to. Compilers hide code that is not in the source, and what
// follows "#line hidden"; but the hidden point within an await only keeps a debugger from stopping
// twice, and what follows it is the rest of the statement.
static bool find_point(struct points *points, struct cs_slice awaits, uint32_t il,
                       struct point *out) {
  struct point point, next = {.il = 0};
  bool any = false, more = next_point(points, &point);
  for (; more && (point.il <= il || !any); point = next) {
    more = next_point(points, &next);
    bool passed = point.il > il, ends = il == CS_LINES_FIRST || il == CS_LINES_LAST;
    if (!point.visible &&
        (passed || ends || awaits_within(awaits, point.il, more ? next.il : UINT32_MAX)))
      continue;
    *out = point;
    any = true;
    if (il == CS_LINES_FIRST) break;
  }
  return any && out->visible;
}

bool cs_pdb_find(struct cs_pdb *pdb, uint32_t method, uint32_t il, struct cs_line *out) {
  struct points points;
  struct point point = {.il = 0};
  uint32_t row = method & 0xFFFFFFu;
  if (method >> 24 != CS_TABLE_METHOD_DEF || !open_points(pdb, row, &points) ||
      !find_point(&points, find_awaits(pdb, row), il, &point))
    return false;
  out->line = (uint32_t)point.line;
  out->file = document_name(pdb, point.document);
  return out->file != NULL;
}
