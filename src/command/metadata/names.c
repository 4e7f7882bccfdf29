// SPDX-License-Identifier: MIT
// Names of types and methods from a module's tables, as in C#: nested types with dots, generic
// parameters by name. Invariant: loops over contents of tables are bounded. Any thread.
// Signal-safe: no.
#include <string.h>

#include "metadata/metadata.h"

enum { MAX_NESTING = 32, MAX_GENERIC = 64 };
// Columns.
enum {
  TYPE_NAME = 1,
  TYPE_SPACE = 2,
  TYPE_FIELDS = 4,
  TYPE_METHODS = 5,
  METHOD_NAME = 3,
  METHOD_SIGNATURE = 4
};
enum { FIELD_NAME = 1, FIELD_SIGNATURE = 2 };
enum { REF_SCOPE = 0, REF_NAME = 1, REF_SPACE = 2 };
enum { NESTED = 0, ENCLOSING = 1, PARAM_OWNER = 2, PARAM_NAME = 3 };
enum { OWNER_TYPE = 0, OWNER_METHOD = 1 };  // coded, in the lowest bit

struct out {
  char *at;
  size_t left;
};

static void add(struct out *out, const char *text, size_t len) {
  if (len >= out->left) len = out->left - 1;
  memcpy(out->at, text, len);
  out->at += len;
  out->left -= len;
  *out->at = '\0';
}

uint32_t cs_metadata_enclosing(const struct cs_metadata *m, uint32_t type) {
  uint32_t row = cs_metadata_last_row(m, CS_TABLE_NESTED_CLASS, NESTED, type), found, outer;
  if (!cs_metadata_cell(m, CS_TABLE_NESTED_CLASS, row, NESTED, &found) || found != type ||
      !cs_metadata_cell(m, CS_TABLE_NESTED_CLASS, row, ENCLOSING, &outer))
    return 0;
  return outer;
}

static const char *string_of(const struct cs_metadata *m, enum cs_table table, uint32_t row,
                             unsigned column) {
  uint32_t offset;
  return cs_metadata_cell(m, table, row, column, &offset) ? cs_metadata_string(m, offset) : NULL;
}

// "<T,U>" for the parameters of `owner` (coded) without the first `inherited` ones, which are the
// enclosing type's. `arguments` are shown in their place. Returns the number of all of them.
static uint32_t add_parameters(struct out *out, const struct cs_metadata *m, uint32_t owner,
                               uint32_t inherited, const char *const *arguments,
                               uint32_t argument_count) {
  uint32_t last = cs_metadata_last_row(m, CS_TABLE_GENERIC_PARAM, PARAM_OWNER, owner), first = last,
           found;
  while (first > 0 && last - first < MAX_GENERIC &&
         cs_metadata_cell(m, CS_TABLE_GENERIC_PARAM, first, PARAM_OWNER, &found) && found == owner)
    first--;
  uint32_t count = last - first;
  for (uint32_t i = inherited; i < count; i++) {
    const char *name = i < argument_count ? arguments[i] : NULL;
    if (name == NULL) name = string_of(m, CS_TABLE_GENERIC_PARAM, first + 1 + i, PARAM_NAME);
    add(out, i == inherited ? "<" : ",", 1);
    if (name != NULL) add(out, name, strlen(name));
  }
  if (count > inherited) add(out, ">", 1);
  return count;
}

// "List`1" without its arity, which the parameters show.
static void add_type_name(struct out *out, const char *name) {
  const char *mark = strrchr(name, '`');
  bool is_arity =
      mark != NULL && mark[1] != '\0' && strspn(mark + 1, "0123456789") == strlen(mark + 1);
  add(out, name, is_arity ? (size_t)(mark - name) : strlen(name));
}

static struct out begin(char *text, size_t cap) {
  text[0] = '\0';
  return (struct out){text, cap};
}

static const struct cs_generic_text no_arguments;

static bool add_type(struct cs_method_text *text, const struct cs_metadata *m, uint32_t type,
                     const struct cs_generic_text *arguments) {
  uint32_t chain[MAX_NESTING], depth = 0, inherited = 0;
  struct out space = begin(text->space, sizeof text->space);
  struct out out = begin(text->type, sizeof text->type);
  for (; type != 0 && depth < MAX_NESTING; type = cs_metadata_enclosing(m, type))
    chain[depth++] = type;
  if (depth == 0 || type != 0) return false;
  const char *name = string_of(m, CS_TABLE_TYPE_DEF, chain[depth - 1], TYPE_SPACE);
  if (name != NULL) add(&space, name, strlen(name));
  while (depth-- > 0) {
    name = string_of(m, CS_TABLE_TYPE_DEF, chain[depth], TYPE_NAME);
    if (name == NULL) return false;
    add_type_name(&out, name);
    inherited = add_parameters(&out, m, chain[depth] << 1 | OWNER_TYPE, inherited, arguments->type,
                               arguments->type_count);
    if (depth > 0) add(&out, ".", 1);
  }
  return true;
}

// The signature in a row of `table` (ECMA-335 II.23.2). Returns false if there is none.
static bool signature_of(const struct cs_metadata *m, enum cs_table table, uint32_t row,
                         unsigned column, struct cs_slice *out) {
  struct cs_slice heap = m->blobs;
  uint32_t offset, size;
  return cs_metadata_cell(m, table, row, column, &offset) && cs_slice_skip(&heap, offset) &&
         cs_slice_compressed(&heap, &size, NULL) && cs_slice_cut(&heap, size, out);
}

static uint32_t parameters_of(const struct cs_metadata *m, uint32_t row) {
  enum { GENERIC = 0x10 };
  struct cs_slice s;
  uint64_t convention;
  uint32_t generic, count;
  bool known = signature_of(m, CS_TABLE_METHOD_DEF, row, METHOD_SIGNATURE, &s) &&
               cs_slice_number(&s, 1, &convention) &&
               ((convention & GENERIC) == 0 || cs_slice_compressed(&s, &generic, NULL)) &&
               cs_slice_compressed(&s, &count, NULL);
  return known ? count : 0;
}

// A type's methods are a run of rows, which begins where TypeDef says.
bool cs_metadata_method(const struct cs_metadata *m, uint32_t token,
                        const struct cs_generic_text *arguments, struct cs_method_text *text) {
  struct out out = begin(text->method, sizeof text->method);
  uint32_t row = token & 0xFFFFFFu;
  if (token >> 24 != CS_TABLE_METHOD_DEF) return false;
  if (arguments == NULL) arguments = &no_arguments;
  const char *name = string_of(m, CS_TABLE_METHOD_DEF, row, METHOD_NAME);
  uint32_t type = cs_metadata_last_row(m, CS_TABLE_TYPE_DEF, TYPE_METHODS, row);
  if (name == NULL || type == 0 || !add_type(text, m, type, arguments)) return false;
  add(&out, name, strlen(name));
  (void)add_parameters(&out, m, row << 1 | OWNER_METHOD, 0, arguments->method,
                       arguments->method_count);
  text->parameters = parameters_of(m, row);
  return true;
}

bool cs_metadata_type(const struct cs_metadata *m, uint32_t row,
                      const struct cs_generic_text *arguments, struct cs_method_text *text) {
  text->method[0] = '\0';
  return add_type(text, m, row, arguments != NULL ? arguments : &no_arguments);
}

// A type's members are a run of rows, up to those of the next type.
static bool members_of(const struct cs_metadata *m, uint32_t type, unsigned column,
                       enum cs_table members, uint32_t *first, uint32_t *end) {
  if (!cs_metadata_cell(m, CS_TABLE_TYPE_DEF, type, column, first)) return false;
  if (!cs_metadata_cell(m, CS_TABLE_TYPE_DEF, type + 1, column, end)) *end = m->rows[members] + 1;
  return *end >= *first && *end <= m->rows[members] + 1;
}

bool cs_metadata_fields_of(const struct cs_metadata *m, uint32_t type, uint32_t *first,
                           uint32_t *end) {
  return members_of(m, type, TYPE_FIELDS, CS_TABLE_FIELD, first, end);
}

const char *cs_metadata_field(const struct cs_metadata *m, uint32_t row) {
  return string_of(m, CS_TABLE_FIELD, row, FIELD_NAME);
}

// The type in a row of TypeRef, which is in another module.
static bool add_type_ref(struct cs_method_text *text, const struct cs_metadata *m, uint32_t row) {
  enum { TAG_BITS = 2, TAG = 3, TYPE_REF = 3 };
  uint32_t chain[MAX_NESTING], depth = 0, scope;
  struct out space = begin(text->space, sizeof text->space);
  struct out out = begin(text->type, sizeof text->type);
  do {
    if (depth == MAX_NESTING || !cs_metadata_cell(m, CS_TABLE_TYPE_REF, row, REF_SCOPE, &scope))
      return false;
    chain[depth++] = row;
    row = scope >> TAG_BITS;
  } while ((scope & TAG) == TYPE_REF);
  const char *name = string_of(m, CS_TABLE_TYPE_REF, chain[depth - 1], REF_SPACE);
  if (name != NULL) add(&space, name, strlen(name));
  while (depth-- > 0) {
    name = string_of(m, CS_TABLE_TYPE_REF, chain[depth], REF_NAME);
    if (name == NULL) return false;
    add_type_name(&out, name);
    if (depth > 0) add(&out, ".", 1);
  }
  return true;
}

bool cs_metadata_field_type(const struct cs_metadata *m, uint32_t row,
                            struct cs_method_text *text) {
  enum { FIELD = 6, STRUCT = 0x11, CLASS = 0x12, GENERIC = 0x15, TAG_BITS = 2, TAG = 3 };
  struct cs_slice s;
  uint64_t kind;
  uint32_t type;
  text->method[0] = '\0';
  if (!signature_of(m, CS_TABLE_FIELD, row, FIELD_SIGNATURE, &s) ||
      !cs_slice_number(&s, 1, &kind) || kind != FIELD || !cs_slice_number(&s, 1, &kind) ||
      (kind == GENERIC && !cs_slice_number(&s, 1, &kind)) || (kind != STRUCT && kind != CLASS) ||
      !cs_slice_compressed(&s, &type, NULL))
    return false;
  if ((type & TAG) == 0) return add_type(text, m, type >> TAG_BITS, &no_arguments);
  return (type & TAG) == 1 && add_type_ref(text, m, type >> TAG_BITS);
}

uint32_t cs_metadata_method_of(const struct cs_metadata *m, uint32_t type, const char *name) {
  uint32_t row, end;
  if (!members_of(m, type, TYPE_METHODS, CS_TABLE_METHOD_DEF, &row, &end)) return 0;
  for (; row < end; row++) {
    const char *found = string_of(m, CS_TABLE_METHOD_DEF, row, METHOD_NAME);
    if (found != NULL && strcmp(found, name) == 0) return (uint32_t)CS_TABLE_METHOD_DEF << 24 | row;
  }
  return 0;
}
