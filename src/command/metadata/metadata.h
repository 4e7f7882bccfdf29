// SPDX-License-Identifier: MIT
// The metadata of a managed module, read without a runtime: its streams, and from its tables the
// names of methods. Runs in the command, not in the observed program. One thread.
//
// Images are not trusted: every offset, size and row number is checked before it is used.
#pragma once

#include "metadata/slice.h"
#include "pe/pe.h"

// ---- Metadata's streams (streams.c) ----
// The stream of that name ("#~", "#Strings") in the metadata at `root`. Returns false if there is
// none or the metadata is malformed.
bool cs_metadata_stream(struct cs_slice root, const char *name, struct cs_slice *out);

// ---- Tables (tables.c), after ECMA-335 II.22 and II.24.2.6 ----
enum cs_table {
  CS_TABLE_MODULE = 0x00,
  CS_TABLE_TYPE_REF = 0x01,
  CS_TABLE_TYPE_DEF = 0x02,
  CS_TABLE_FIELD = 0x04,
  CS_TABLE_METHOD_DEF = 0x06,
  CS_TABLE_NESTED_CLASS = 0x29,
  CS_TABLE_GENERIC_PARAM = 0x2A,
  CS_TABLE_DOCUMENT = 0x30,
  CS_TABLE_METHOD_DEBUG_INFORMATION = 0x31,
  CS_TABLE_CUSTOM_DEBUG_INFORMATION = 0x37,
  CS_TABLES = 0x40,
};
enum { CS_COLUMNS = 9 };

struct cs_metadata {
  uint8_t *bytes;
  struct cs_slice strings, blobs;
  uint32_t rows[CS_TABLES];
  uint32_t row_size[CS_TABLES];
  struct cs_slice table[CS_TABLES];
  uint8_t column_size[CS_TABLES][CS_COLUMNS];
  bool wide_strings, wide_guids, wide_blobs;  // indices of four bytes
};

// Copies all that is needed. NULL: not a readable managed module.
struct cs_metadata *cs_metadata_read(const struct cs_pe *pe);
void cs_metadata_free(struct cs_metadata *metadata);
// Finds the tables of a "#~" stream. `m` is zeroed, except for the numbers of rows of tables that
// the stream refers to and does not contain. *valid: a bit for each table that it contains.
bool cs_metadata_tables(struct cs_metadata *m, struct cs_slice stream, uint64_t *valid);
// One cell. `row` counts from 1. Returns false if there is no such cell.
bool cs_metadata_cell(const struct cs_metadata *m, enum cs_table table, uint32_t row,
                      unsigned column, uint32_t *value);
// Returns the last row whose `column` is at most `value`, in a table sorted by that column, or 0
// if there is none.
uint32_t cs_metadata_last_row(const struct cs_metadata *m, enum cs_table table, unsigned column,
                              uint32_t value);
// Returns a string of the heap, or NULL. Valid as long as the metadata.
const char *cs_metadata_string(const struct cs_metadata *m, uint32_t offset);

// ---- Names (names.c) ----
struct cs_method_text {
  char space[512];      // "System.Collections.Generic"
  char type[2048];      // "List<T>.Enumerator", with the names of generic parameters
  char method[1024];    // "MoveNext"
  uint32_t parameters;  // how many the method has; 0 also if that is not known
};
// What is shown in place of generic parameters, by their index: those of a type, which include the
// enclosing types', and those of a method. NULL, or beyond `count`: the parameter's own name.
enum { CS_GENERIC_ARGUMENTS = 16 };
struct cs_generic_text {
  uint32_t type_count, method_count;
  const char *type[CS_GENERIC_ARGUMENTS], *method[CS_GENERIC_ARGUMENTS];
};
// From an mdMethodDef. `arguments` may be NULL. Returns false if the token is not a method's.
bool cs_metadata_method(const struct cs_metadata *m, uint32_t token,
                        const struct cs_generic_text *arguments, struct cs_method_text *out);
// The type in a row of TypeDef: `space` and `type`. `arguments` may be NULL. Returns false if there
// is no such row.
bool cs_metadata_type(const struct cs_metadata *m, uint32_t row,
                      const struct cs_generic_text *arguments, struct cs_method_text *out);

// Returns the type that a nested type is in, or 0 if it is not nested.
uint32_t cs_metadata_enclosing(const struct cs_metadata *m, uint32_t type);

// ---- Rows by name (find.c) ----
// The row of TypeDef of a type, with the names of nested types after a '+': "Queue`1+Slot"; 0:
// there is none.
uint32_t cs_metadata_find_type(const struct cs_metadata *m, const char *space, const char *name);
// Returns the row of Field of one of the type's own fields, or 0 if there is none.
uint32_t cs_metadata_find_field(const struct cs_metadata *m, uint32_t type, const char *name);

// ---- Members of a type, by its row (names.c) ----
// The mdMethodDef of its first method of that name; 0: it has none.
uint32_t cs_metadata_method_of(const struct cs_metadata *m, uint32_t type, const char *name);
// Its fields: *first to *end - 1 are rows of the table. Returns false if there is no such type.
bool cs_metadata_fields_of(const struct cs_metadata *m, uint32_t type, uint32_t *first,
                           uint32_t *end);
// Returns a field's name, or NULL. Valid as long as the metadata.
const char *cs_metadata_field(const struct cs_metadata *m, uint32_t row);
// The class or struct that a field is declared with, without generic arguments: `space` and `type`.
// Returns false if it is declared with anything else.
bool cs_metadata_field_type(const struct cs_metadata *m, uint32_t row, struct cs_method_text *out);

// ---- The module's name (self.c) ----
// The file name that the compiler wrote, "App.dll". Returns NULL if it is unreadable. Valid as long
// as the metadata.
const char *cs_metadata_module_name(const struct cs_metadata *m);
