// SPDX-License-Identifier: MIT
// Names of classes and of async methods, and the lines of their awaits. A state machine sets its
// state before each await, so the instruction that sets a given state shows which await it is.
// Invariant: there is a line only if exactly one place sets the state. One thread. Signal-safe: no.
#include <stdio.h>
#include <string.h>

#include "async/classes.h"
#include "demangle/demangle.h"

enum { MOST_CODE = 1 << 20 };

static const struct cs_metadata *metadata_of(struct cs_async_classes *classes, uint32_t index) {
  return cs_heap_modules_metadata(cs_async_modules_of(classes),
                                  cs_async_class_at(classes, index)->module);
}

bool cs_async_class_name(struct cs_async_classes *classes, uint32_t index, char *text, size_t cap) {
  const struct cs_async_class *class = cs_async_class_at(classes, index);
  return cs_heap_modules_type_name(cs_async_modules_of(classes), class->module, class->type.row,
                                   text, cap);
}

bool cs_async_awaiter_name(struct cs_async_classes *classes, uint32_t machine, uint32_t field,
                           char *text, size_t cap) {
  static struct cs_method_text type;
  const struct cs_metadata *m = metadata_of(classes, machine);
  if (m == NULL || !cs_metadata_field_type(m, field, &type)) return false;
  (void)snprintf(text, cap, "%s%s%s", type.space, type.space[0] != '\0' ? "." : "", type.type);
  return true;
}

bool cs_async_method_name(struct cs_async_classes *classes, uint32_t machine, char *text,
                          size_t cap) {
  static struct cs_method_text type;
  const struct cs_metadata *m = metadata_of(classes, machine);
  if (m == NULL || !cs_metadata_type(m, cs_async_class_at(classes, machine)->type.row, NULL, &type))
    return false;
  (void)cs_demangle(
      &(struct cs_mangled){.space = type.space, .type = type.type, .method = "MoveNext"}, text,
      cap);
  return true;
}

// ---- The await ----

static size_t put_constant(uint8_t *out, int32_t value) {
  enum { LDC_0 = 0x16, LDC_SHORT = 0x1F, LDC = 0x20, LAST_OWN = 8 };
  if (value <= LAST_OWN) out[0] = (uint8_t)(LDC_0 + value);
  if (value <= LAST_OWN) return 1;
  out[0] = value <= INT8_MAX ? LDC_SHORT : LDC;
  for (int i = 0; i < 4; i++) out[1 + i] = (uint8_t)(value >> 8 * i);
  return value <= INT8_MAX ? 2 : 5;
}

// this.state = local = N, as the compilers write it; a field's token follows.
bool cs_async_find_state(const uint8_t *code, size_t size, int32_t state, uint32_t *il) {
  enum { LDARG_0 = 0x02, DUP = 0x25, STLOC_0 = 0x0A, STFLD = 0x7D, TOKEN = 4 };
  uint8_t wanted[16] = {LDARG_0};
  unsigned found = 0;
  if (state < 0) return false;
  size_t len = 1 + put_constant(wanted + 1, state);
  wanted[len++] = DUP;
  wanted[len++] = STLOC_0;
  wanted[len++] = STFLD;
  for (size_t at = 0; at + len + TOKEN <= size; at++) {
    if (memcmp(code + at, wanted, len) != 0) continue;
    *il = (uint32_t)at;
    found++;
  }
  return found == 1;
}

// A method's code follows its header, of which there is a short and a long form.
static uint8_t *read_code(const struct cs_heap_image *image, uint32_t rva, uint32_t *size) {
  enum { FORM = 3, SHORT = 2, SHORT_SIZE_AT = 2, LONG = 3, LONG_BYTES = 12, SIZE_AT = 4 };
  uint8_t header[LONG_BYTES];
  uint64_t at;
  if (!cs_pe_place(&image->pe, rva, &at) || !cs_pe_bytes(&image->pe, at, header, 1)) return NULL;
  if ((header[0] & FORM) == SHORT) {
    *size = header[0] >> SHORT_SIZE_AT;
    at++;
  } else {
    if ((header[0] & FORM) != LONG || !cs_pe_bytes(&image->pe, at, header, sizeof header))
      return NULL;
    memcpy(size, header + SIZE_AT, sizeof *size);
    at += LONG_BYTES;
  }
  uint8_t *code = *size > 0 && *size <= MOST_CODE ? malloc(*size) : NULL;
  if (code != NULL && cs_pe_bytes(&image->pe, at, code, *size)) return code;
  free(code);
  return NULL;
}

bool cs_async_line(struct cs_async_classes *classes, struct cs_lines *lines, uint32_t machine,
                   int32_t state, struct cs_line *out) {
  enum { RVA = 0, ROW = 0xFFFFFF };
  const struct cs_metadata *m = metadata_of(classes, machine);
  const struct cs_async_class *class = cs_async_class_at(classes, machine);
  struct cs_heap_modules *modules = cs_async_modules_of(classes);
  const char *path = cs_heap_modules_path(modules, class->module);
  struct cs_heap_image image;
  uint32_t method = m != NULL ? cs_metadata_method_of(m, class->type.row, "MoveNext") : 0;
  uint32_t rva, size, il;
  if (method == 0 || path == NULL ||
      !cs_metadata_cell(m, CS_TABLE_METHOD_DEF, method & ROW, RVA, &rva) ||
      !cs_heap_modules_image(modules, class->module, &image))
    return false;
  uint8_t *code = read_code(&image, rva, &size);
  bool found = code != NULL && cs_async_find_state(code, size, state, &il);
  free(code);
  cs_heap_modules_add_lines(modules, class->module, lines);
  return found && cs_lines_find(lines, path, method, il, out);
}
