// SPDX-License-Identifier: MIT
// Names of FunctionIDs: from their module's metadata; for dynamic methods and IL stubs, from the
// runtime. Invariant: every text is terminated and bounded, whatever the metadata contains.
// Threads: any that may call the CLR. Signal-safe: no.
#include "clr_names/names.h"

#include <string.h>

#include "base/prefix.h"
#include "clr_names/types.h"

enum { NESTING = 6, NAME_UNITS = 1024 };

struct context {  // for the signature's reader
  ICorProfilerInfo15 *info;
  IMetaDataImport2 *import;  // NULL: a method without metadata
  struct cs_type_args type_args, method_args;
  unsigned nesting;
};

static void name_token(void *data, mdToken token, const struct cs_type_args *args,
                       struct cs_text_out *out);

static void name_variable(void *data, bool of_method, uint32_t index, struct cs_text_out *out) {
  const struct context *c = data;
  const struct cs_type_args *args = of_method ? &c->method_args : &c->type_args;
  if (index < args->count) {
    cs_text_add(out, args->text[index]);
  } else {
    cs_text_add(out, of_method ? "!!" : "!");
    cs_text_add_uint(out, index);
  }
}

static void name_handle(void *data, uint64_t handle, struct cs_text_out *out) {
  const struct context *c = data;
  cs_class_write(c->info, (ClassID)handle, NESTING, out);
}

static struct cs_sig_names names_of(struct context *c) {
  return (struct cs_sig_names){c, name_token, name_variable, name_handle};
}

static bool name_spec(struct context *c, mdToken token, struct cs_text_out *out) {
  PCCOR_SIGNATURE sig = NULL;
  ULONG len = 0;
  if (c->nesting == 0 ||
      c->import->lpVtbl->GetTypeSpecFromToken(c->import, token, &sig, &len) != S_OK)
    return false;
  c->nesting--;
  struct cs_sig_names names = names_of(c);
  bool ok = cs_sig_type(sig, len, &names, out);
  c->nesting++;
  return ok;
}

static void name_token(void *data, mdToken token, const struct cs_type_args *args,
                       struct cs_text_out *out) {
  struct context *c = data;
  struct cs_type_name name;
  if (c->import != NULL && token >> 24 == 0x1B && name_spec(c, token, out)) return;
  if (c->import != NULL && cs_type_read(c->import, token, &name))
    cs_type_write_short(&name, args, out);
  else
    cs_text_add_char(out, '?');
}

// Returns whether C# tells such methods of a type apart by their results, too.
static bool is_conversion(const char *method) {
  const char *dot = strrchr(method, '.'), *name = dot != NULL ? dot + 1 : method;
  return strcmp(name, "op_Implicit") == 0 || strcmp(name, "op_Explicit") == 0 ||
         strcmp(name, "op_CheckedExplicit") == 0;
}

static void write_signature(struct context *c, PCCOR_SIGNATURE sig, ULONG len,
                            struct cs_method_name *out) {
  struct cs_text_out text = cs_text_begin(out->signature, sizeof out->signature);
  struct cs_sig_names names = names_of(c);
  bool read = cs_sig_method(sig, len, &names, &text);
  if (read && is_conversion(out->method)) {
    cs_text_add_char(&text, ':');
    read = cs_sig_result(sig, len, &names, &text);
  }
  if (!read) out->signature[0] = '\0';
}

// `len` is with the NUL, and of the whole text, of which only NAME_UNITS have been read.
static void add_wide(struct cs_text_out *text, const WCHAR *wide, ULONG len) {
  ULONG units = len > 0 ? len - 1 : 0;
  cs_text_add_utf16(text, wide, units < NAME_UNITS ? units : NAME_UNITS - 1);
}

static void utf16_into(char *buffer, size_t cap, const WCHAR *wide, ULONG len) {
  struct cs_text_out text = cs_text_begin(buffer, cap);
  add_wide(&text, wide, len);
}

static void write_module(ICorProfilerInfo15 *info, ModuleID module, struct cs_method_name *out) {
  WCHAR wide[NAME_UNITS];
  LPCBYTE base = NULL;
  ULONG len = 0;
  if (module == 0 ||
      FAILED(info->lpVtbl->GetModuleInfo(info, module, &base, NAME_UNITS, &len, wide, NULL)))
    return;
  utf16_into(out->module, sizeof out->module, wide, len);
  out->base = (uint64_t)(uintptr_t)base;
}

// Reads the generic arguments as far as they are known without a frame: the parameters' names, and
// the arguments themselves where the code is not shared.
static void read_instantiation(struct context *c, FunctionID function, ClassID of, mdTypeDef type,
                               mdMethodDef method, ModuleID *module) {
  ClassID class_id = 0, method_ids[CS_TYPE_ARGS], class_ids[CS_TYPE_ARGS];
  ULONG32 method_count = 0, class_count = 0;
  cs_type_params(c->import, type, &c->type_args);
  cs_type_params(c->import, method, &c->method_args);
  if (FAILED(c->info->lpVtbl->GetFunctionInfo2(c->info, function, 0, &class_id, module, NULL,
                                               CS_TYPE_ARGS, &method_count, method_ids)))
    return;
  if (method_count > CS_TYPE_ARGS) method_count = CS_TYPE_ARGS;
  cs_type_instantiate(c->info, method_ids, method_count, NESTING, &c->method_args);
  if (class_id == 0) class_id = of;
  if (class_id == 0 || c->type_args.count == 0 ||
      FAILED(c->info->lpVtbl->GetClassIDInfo2(c->info, class_id, NULL, NULL, NULL, CS_TYPE_ARGS,
                                              &class_count, class_ids)))
    return;
  if (class_count > CS_TYPE_ARGS) class_count = CS_TYPE_ARGS;
  cs_type_instantiate(c->info, class_ids, class_count, NESTING, &c->type_args);
}

static void write_method(const struct context *c, const WCHAR *wide, ULONG len,
                         struct cs_method_name *out) {
  struct cs_text_out text = cs_text_begin(out->method, sizeof out->method);
  add_wide(&text, wide, len);
  for (unsigned i = 0; i < c->method_args.count; i++) {
    cs_text_add_char(&text, i == 0 ? '<' : ',');
    cs_text_add(&text, c->method_args.text[i]);
  }
  if (c->method_args.count > 0) cs_text_add_char(&text, '>');
}

static bool name_by_metadata(struct context *c, FunctionID function, ClassID of, mdMethodDef method,
                             struct cs_method_name *out) {
  WCHAR wide[NAME_UNITS];
  ULONG len = 0, sig_len = 0;
  mdTypeDef type = 0;
  PCCOR_SIGNATURE sig = NULL;
  ModuleID module = 0;
  struct cs_type_name name;
  if (FAILED(c->import->lpVtbl->GetMethodProps(c->import, method, &type, wide, NAME_UNITS, &len,
                                               NULL, &sig, &sig_len, NULL, NULL)))
    return false;
  read_instantiation(c, function, of, type, method, &module);
  write_method(c, wide, len, out);
  write_module(c->info, module, out);
  // Methods outside of any class belong to the module's pseudo-type.
  struct cs_text_out text = cs_text_begin(out->type, sizeof out->type);
  if (cs_type_read(c->import, type, &name)) {
    memcpy(out->space, name.space, sizeof out->space);
    cs_type_write(&name, &c->type_args, &text);
  }
  write_signature(c, sig, sig_len, out);
  out->kind = CS_NAME_METHOD;
  out->token = method;
  return true;
}

// "IL_STUB_PInvoke" and the like are the runtime's; the program emits all others.
static bool name_dynamic(struct context *c, FunctionID function, struct cs_method_name *out) {
  static const char stub_prefix[] = "IL_STUB_";
  WCHAR wide[NAME_UNITS];
  ULONG len = 0, sig_len = 0;
  PCCOR_SIGNATURE sig = NULL;
  ModuleID module = 0;
  char name[sizeof out->method];
  if (FAILED(c->info->lpVtbl->GetDynamicFunctionInfo(c->info, function, &module, &sig, &sig_len,
                                                     NAME_UNITS, &len, wide)))
    return false;
  utf16_into(name, sizeof name, wide, len);
  bool is_stub = cs_has_prefix(name, stub_prefix);
  struct cs_text_out text = cs_text_begin(out->method, sizeof out->method);
  cs_text_add(&text, is_stub ? "[IL stub] " : "[dynamic] ");
  cs_text_add(&text, is_stub ? name + sizeof stub_prefix - 1 : name);
  write_module(c->info, module, out);
  write_signature(c, sig, sig_len, out);
  out->kind = is_stub ? CS_NAME_STUB : CS_NAME_DYNAMIC;
  return true;
}

bool cs_method_name_get(ICorProfilerInfo15 *info, FunctionID function, ClassID of,
                        struct cs_method_name *out) {
  struct context c = {.info = info, .nesting = NESTING};
  mdToken method = 0;
  memset(out, 0, sizeof *out);
  out->kind = CS_NAME_UNKNOWN;
  if (function == 0) return false;
  // Checked first, because the runtime returns some module's metadata for a dynamic method as well,
  // with a token that is not in it.
  BOOL dynamic = 0;
  if (info->lpVtbl->IsFunctionDynamic(info, function, &dynamic) == S_OK && dynamic)
    return name_dynamic(&c, function, out);
  if (FAILED(info->lpVtbl->GetTokenAndMetaDataFromFunction(info, function, &IID_IMetaDataImport2,
                                                           (void **)&c.import, &method)) ||
      c.import == NULL)
    return false;
  bool ok = name_by_metadata(&c, function, of, method, out);
  (void)c.import->lpVtbl->Release(c.import);
  return ok;
}
