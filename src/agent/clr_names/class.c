// SPDX-License-Identifier: MIT
// Reads classes from the metadata and the CLR. Invariants: every loop over metadata is bounded;
// every interface pointer that the CLR returns is released. Threads: any that may call the CLR.
// Signal-safe: no.
#include "clr_names/class.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "clr_names/types.h"

enum { NAME_UNITS = 1024, PATH_UNITS = 512, FIELDS = 256, NESTING = 6 };

static IMetaDataImport2 *import_of(ICorProfilerInfo15 *info, ModuleID module) {
  IMetaDataImport2 *import = NULL;
  HRESULT hr = info->lpVtbl->GetModuleMetaData(info, module, ofRead, &IID_IMetaDataImport2,
                                               (void **)&import);
  return hr == S_OK ? import : NULL;
}

// Adds the name with its nesting: "Outer`1+Inner`1".
static bool write_name(IMetaDataImport2 *import, mdTypeDef token, struct cs_text_out *out) {
  mdTypeDef chain[CS_TYPE_LEVELS];
  unsigned levels = 0;
  for (mdTypeDef at = token; at != 0 && levels < CS_TYPE_LEVELS; levels++) {
    chain[levels] = at;
    if (import->lpVtbl->GetNestedClassProps(import, at, &at) != S_OK) at = 0;
  }
  while (levels-- > 0) {
    WCHAR wide[NAME_UNITS];
    ULONG len = 0;
    if (FAILED(import->lpVtbl->GetTypeDefProps(import, chain[levels], wide, NAME_UNITS, &len, NULL,
                                               NULL)))
      return false;
    cs_text_add_utf16(out, wide, len == 0 ? 0 : len < NAME_UNITS ? len - 1 : NAME_UNITS - 1);
    if (levels > 0) cs_text_add_char(out, '+');
  }
  return true;
}

static bool is_core(ICorProfilerInfo15 *info, ModuleID module) {
  static const char file[] = "System.Private.CoreLib.dll";
  WCHAR wide[PATH_UNITS];
  char path[PATH_UNITS * 3];
  ULONG len = 0;
  if (FAILED(info->lpVtbl->GetModuleInfo(info, module, NULL, PATH_UNITS, &len, wide, NULL)) ||
      len == 0 || len > PATH_UNITS)
    return false;
  struct cs_text_out out = cs_text_begin(path, sizeof path);
  cs_text_add_utf16(&out, wide, len - 1);
  return strcmp(cs_file_of(path), file) == 0;
}

bool cs_class_read(ICorProfilerInfo15 *info, ClassID id, struct cs_class *out) {
  ULONG32 count = 0;
  memset(out, 0, sizeof *out);
  out->id = id;
  if (FAILED(info->lpVtbl->GetClassIDInfo2(info, id, &out->module, &out->token, &out->parent,
                                           CS_CLASS_ARGS, &count, out->args)) ||
      out->module == 0 || count > CS_CLASS_ARGS)
    return false;
  out->arg_count = count;
  IMetaDataImport2 *import = import_of(info, out->module);
  if (import == NULL) return false;
  struct cs_text_out text = cs_text_begin(out->name, sizeof out->name);
  bool ok = write_name(import, out->token, &text);
  (void)import->lpVtbl->Release(import);
  out->core = ok && is_core(info, out->module);
  return ok;
}

// ---- As the events have it, and whole ----

enum form {
  EVENT,     // "Inner`1[Space.Other+Nested,System.Int32]"
  ARGUMENT,  // as in those brackets: "Space.Outer`1+Inner`1[System.String,System.Int32]"
  WHOLE,     // "Space.Outer`1[System.String].Inner`1[System.Int32]"
};

static void write_class(ICorProfilerInfo15 *info, ClassID id, enum form form, unsigned nesting,
                        struct cs_text_out *out);

static void write_args(ICorProfilerInfo15 *info, const ClassID args[], unsigned count,
                       enum form form, unsigned nesting, struct cs_text_out *out) {
  for (unsigned i = 0; i < count; i++) {
    cs_text_add_char(out, i == 0 ? '[' : ',');
    write_class(info, args[i], form, nesting, out);
  }
  if (count > 0) cs_text_add_char(out, ']');
}

// Returns how many arguments the type at the beginning of "Inner`1+More" has of its own.
static unsigned own_args(const char *name, size_t len, unsigned most) {
  const char *mark = memrchr(name, '`', len);
  unsigned long own = mark != NULL ? strtoul(mark + 1, NULL, 10) : 0;
  return own < most ? (unsigned)own : most;
}

// Where the names do not say whose the arguments are, the innermost type has them.
static void write_levels(ICorProfilerInfo15 *info, const struct cs_class *class, unsigned nesting,
                         struct cs_text_out *out) {
  const char *at = class->name;
  unsigned used = 0;
  for (size_t len = strcspn(at, "+"); at[len] != '\0'; len = strcspn(at, "+")) {
    unsigned own = own_args(at, len, class->arg_count - used);
    cs_text_add_len(out, at, len);
    write_args(info, &class->args[used], own, WHOLE, nesting, out);
    cs_text_add_char(out, '.');
    used += own;
    at += len + 1;
  }
  cs_text_add(out, at);
  write_args(info, &class->args[used], class->arg_count - used, WHOLE, nesting, out);
}

static void write_class(ICorProfilerInfo15 *info, ClassID id, enum form form, unsigned nesting,
                        struct cs_text_out *out) {
  CorElementType element = 0;
  ClassID element_class = 0;
  ULONG rank = 0;
  struct cs_class class;
  if (id == 0 || nesting == 0) {
    cs_text_add(out, id == 0 ? "?" : "...");
  } else if (info->lpVtbl->IsArrayClass(info, id, &element, &element_class, &rank) == S_OK) {
    write_class(info, element_class, form, nesting - 1, out);
    cs_type_write_ranks(rank, out);
  } else if (!cs_class_read(info, id, &class)) {
    cs_text_add(out, "?");
  } else if (form == WHOLE) {
    write_levels(info, &class, nesting - 1, out);
  } else {
    const char *outer = form == EVENT ? strrchr(class.name, '+') : NULL;
    cs_text_add(out, outer != NULL ? outer + 1 : class.name);
    write_args(info, class.args, class.arg_count, ARGUMENT, nesting - 1, out);
  }
}

void cs_class_write_as_event(ICorProfilerInfo15 *info, ClassID id, struct cs_text_out *out) {
  write_class(info, id, EVENT, NESTING, out);
}

void cs_class_write_nested(ICorProfilerInfo15 *info, ClassID id, struct cs_text_out *out) {
  write_class(info, id, WHOLE, NESTING, out);
}

// ---- Unloading ----

static bool is_permanent(ICorProfilerInfo15 *info, ClassID id, unsigned nesting) {
  CorElementType element = 0;
  ClassID element_class = 0;
  ULONG rank = 0;
  DWORD flags = 0;
  struct cs_class class;
  if (id == 0 || nesting == 0) return false;
  if (info->lpVtbl->IsArrayClass(info, id, &element, &element_class, &rank) == S_OK)
    return is_permanent(info, element_class, nesting - 1);
  if (!cs_class_read(info, id, &class) ||
      FAILED(info->lpVtbl->GetModuleInfo2(info, class.module, NULL, 0, NULL, NULL, NULL, &flags)) ||
      (flags & COR_PRF_MODULE_COLLECTIBLE) != 0)
    return false;
  for (unsigned i = 0; i < class.arg_count; i++)
    if (!is_permanent(info, class.args[i], nesting - 1)) return false;
  return true;
}

bool cs_class_is_permanent(ICorProfilerInfo15 *info, ClassID id) {
  return is_permanent(info, id, NESTING);
}

// ---- Fields and methods ----

bool cs_class_field(ICorProfilerInfo15 *info, const struct cs_class *class, const WCHAR *name,
                    uint32_t *offset) {
  COR_FIELD_OFFSET fields[FIELDS];
  ULONG count = 0, size = 0;
  mdFieldDef field = 0;
  IMetaDataImport2 *import = import_of(info, class->module);
  if (import == NULL) return false;
  HRESULT hr = import->lpVtbl->FindField(import, class->token, name, NULL, 0, &field);
  (void)import->lpVtbl->Release(import);
  if (hr != S_OK ||
      FAILED(info->lpVtbl->GetClassLayout(info, class->id, fields, FIELDS, &count, &size)))
    return false;
  for (ULONG i = 0; i < count && i < FIELDS; i++) {
    if (fields[i].ridOfField != field) continue;
    *offset = fields[i].ulOffset;
    return true;
  }
  return false;
}

bool cs_class_origin(ICorProfilerInfo15 *info, const struct cs_class *class, uint32_t *offset) {
  COR_FIELD_OFFSET fields[FIELDS];
  ULONG count = 0, size = 0;
  if (FAILED(info->lpVtbl->GetClassLayout(info, class->id, fields, FIELDS, &count, &size)) ||
      count == 0 || count > FIELDS)
    return false;
  *offset = fields[0].ulOffset;
  for (ULONG i = 1; i < count; i++)
    if (fields[i].ulOffset < *offset) *offset = fields[i].ulOffset;
  return true;
}

bool cs_class_named(ICorProfilerInfo15 *info, ModuleID module, const WCHAR *name, ClassID args[],
                    unsigned arg_count, struct cs_class *out) {
  mdTypeDef token = 0;
  ClassID id = 0;
  IMetaDataImport2 *import = import_of(info, module);
  if (import == NULL) return false;
  HRESULT hr = import->lpVtbl->FindTypeDefByName(import, name, 0, &token);
  (void)import->lpVtbl->Release(import);
  return hr == S_OK &&
         info->lpVtbl->GetClassFromTokenAndTypeArgs(info, module, token, arg_count, args, &id) ==
             S_OK &&
         cs_class_read(info, id, out);
}

bool cs_class_of_core(ICorProfilerInfo15 *info, const WCHAR *name, struct cs_class *out) {
  ICorProfilerModuleEnum *modules = NULL;
  ModuleID module;
  ULONG got = 0;
  bool found = false;
  if (info->lpVtbl->EnumModules(info, &modules) != S_OK || modules == NULL) return false;
  while (!found && modules->lpVtbl->Next(modules, 1, &module, &got) == S_OK && got == 1)
    found = is_core(info, module) && cs_class_named(info, module, name, NULL, 0, out);
  (void)modules->lpVtbl->Release(modules);
  return found;
}

bool cs_class_method(ICorProfilerInfo15 *info, const struct cs_class *class, const WCHAR *name,
                     mdMethodDef *token, FunctionID *function) {
  IMetaDataImport2 *import = import_of(info, class->module);
  if (import == NULL) return false;
  HRESULT hr = import->lpVtbl->FindMethod(import, class->token, name, NULL, 0, token);
  (void)import->lpVtbl->Release(import);
  *function = 0;
  return hr == S_OK && info->lpVtbl->GetFunctionFromTokenAndTypeArgs(
                           info, class->module, *token, class->id, 0, NULL, function) == S_OK;
}
