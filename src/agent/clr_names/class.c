// SPDX-License-Identifier: MIT
// Reads classes from the metadata and the CLR. Invariants: every loop over metadata is bounded;
// every interface pointer that the CLR returns is released. Threads: any that may call the CLR.
// Signal-safe: no.
#include "clr_names/class.h"

#include <string.h>

#include "base/path.h"
#include "clr_names/types.h"

enum { NAME_UNITS = 512, FIELDS = 256 };

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
  WCHAR wide[NAME_UNITS];
  char path[NAME_UNITS * 3];
  ULONG len = 0;
  if (FAILED(info->lpVtbl->GetModuleInfo(info, module, NULL, NAME_UNITS, &len, wide, NULL)) ||
      len == 0 || len > NAME_UNITS)
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

static void write_args(ICorProfilerInfo15 *info, const struct cs_class *class, unsigned nesting,
                       struct cs_text_out *out) {
  for (unsigned i = 0; i < class->arg_count; i++) {
    cs_text_add_char(out, i == 0 ? '[' : ',');
    cs_class_write_as_event(info, class->args[i], nesting, out);
  }
  if (class->arg_count > 0) cs_text_add_char(out, ']');
}

void cs_class_write_as_event(ICorProfilerInfo15 *info, ClassID id, unsigned nesting,
                             struct cs_text_out *out) {
  CorElementType element = 0;
  ClassID element_class = 0;
  ULONG rank = 0;
  struct cs_class class;
  if (id == 0 || nesting == 0) {
    cs_text_add(out, id == 0 ? "?" : "...");
  } else if (info->lpVtbl->IsArrayClass(info, id, &element, &element_class, &rank) == S_OK) {
    cs_class_write_as_event(info, element_class, nesting - 1, out);
    cs_type_write_ranks(rank, out);
  } else if (cs_class_read(info, id, &class)) {
    const char *outer = strrchr(class.name, '+');
    cs_text_add(out, outer != NULL ? outer + 1 : class.name);
    write_args(info, &class, nesting - 1, out);
  } else {
    cs_text_add(out, "?");
  }
}

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
