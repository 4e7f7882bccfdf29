// SPDX-License-Identifier: MIT
// Rows of a module's tables by name. Invariant: loops over contents of tables are bounded. Any
// thread. Signal-safe: no.
#include <string.h>

#include "metadata/metadata.h"

enum { TYPE_NAME = 1, TYPE_SPACE = 2, FIELD_NAME = 1 };

static bool is_text(const struct cs_metadata *m, enum cs_table table, uint32_t row, unsigned column,
                    const char *text, size_t len) {
  uint32_t offset;
  const char *found = NULL;
  if (cs_metadata_cell(m, table, row, column, &offset)) found = cs_metadata_string(m, offset);
  return found != NULL && strncmp(found, text, len) == 0 && found[len] == '\0';
}

uint32_t cs_metadata_find_type(const struct cs_metadata *m, const char *space, const char *name) {
  uint32_t outer = 0, type;
  do {
    size_t len = strcspn(name, "+");
    // The namespace of a nested type is that of the outermost one, and its own is empty.
    for (type = 1; type <= m->rows[CS_TABLE_TYPE_DEF]; type++)
      if (is_text(m, CS_TABLE_TYPE_DEF, type, TYPE_NAME, name, len) &&
          is_text(m, CS_TABLE_TYPE_DEF, type, TYPE_SPACE, space, strlen(space)) &&
          cs_metadata_enclosing(m, type) == outer)
        break;
    if (type > m->rows[CS_TABLE_TYPE_DEF]) return 0;
    outer = type;
    space = "";
    name += len;
  } while (*name++ == '+');
  return type;
}

uint32_t cs_metadata_find_field(const struct cs_metadata *m, uint32_t type, const char *name) {
  uint32_t field, end;
  if (!cs_metadata_fields_of(m, type, &field, &end)) return 0;
  for (; field < end; field++)
    if (is_text(m, CS_TABLE_FIELD, field, FIELD_NAME, name, strlen(name))) return field;
  return 0;
}
