// SPDX-License-Identifier: MIT
// Types as text. Invariants: every loop over metadata is bounded, because the module may be
// obfuscated or broken; every interface pointer that the CLR returns is released. Threads: any that
// may call the CLR. Signal-safe: no.
#include "clr_names/types.h"

#include <stdlib.h>
#include <string.h>

#include "base/keywords.h"

enum {
  NAME_UNITS = 1024,
  TABLE_MASK = 0x7F000000,
  TABLE_TYPE_REF = 0x01000000,
  TABLE_TYPE_DEF = 0x02000000,
};

static size_t units_of(ULONG with_nul, size_t cap) {
  if (with_nul == 0) return 0;
  return with_nul - 1 < cap - 1 ? with_nul - 1 : cap - 1;
}

// Reads the name of one TypeDef or TypeRef as the metadata has it, and the type that it is nested
// in (0: none).
static bool read_level(IMetaDataImport2 *import, mdToken token, char *name, size_t cap,
                       mdToken *outer) {
  WCHAR wide[NAME_UNITS];
  ULONG len = 0;
  HRESULT hr;
  *outer = 0;
  if ((token & TABLE_MASK) == TABLE_TYPE_DEF) {
    hr = import->lpVtbl->GetTypeDefProps(import, token, wide, NAME_UNITS, &len, NULL, NULL);
    if (import->lpVtbl->GetNestedClassProps(import, token, outer) != S_OK) *outer = 0;
  } else if ((token & TABLE_MASK) == TABLE_TYPE_REF) {
    hr = import->lpVtbl->GetTypeRefProps(import, token, outer, wide, NAME_UNITS, &len);
    if ((*outer & TABLE_MASK) != TABLE_TYPE_REF) *outer = 0;  // the scope is a module or assembly
  } else {
    return false;
  }
  if (FAILED(hr)) return false;
  struct cs_text_out out = cs_text_begin(name, cap);
  cs_text_add_utf16(&out, wide, units_of(len, NAME_UNITS));
  return true;
}

// Cuts the suffix off and returns its number: "List`1" is "List" with one parameter.
static unsigned split_arity(char *name) {
  char *mark = strrchr(name, '`');
  if (mark == NULL || mark[1] < '1' || mark[1] > '9') return 0;
  char *end;
  unsigned long arity = strtoul(mark + 1, &end, 10);
  if (*end != '\0' || arity > 1000) return 0;
  *mark = '\0';
  return (unsigned)arity;
}

// Moves the namespace of "System.Linq.Enumerable" to `space`. A dot after a '<' is part of a
// compiler's own name.
static void split_namespace(char *name, char *space, size_t cap) {
  size_t plain = strcspn(name, "<"), dot = 0;
  struct cs_text_out out = cs_text_begin(space, cap);
  for (size_t i = 1; i < plain; i++) {
    if (name[i] == '.') dot = i;
  }
  if (dot == 0 || name[dot + 1] == '\0') return;
  cs_text_add_len(&out, name, dot);
  memmove(name, name + dot + 1, strlen(name + dot + 1) + 1);
}

bool cs_type_read(IMetaDataImport2 *import, mdToken token, struct cs_type_name *out) {
  out->space[0] = '\0';
  out->levels = 0;
  while (token != 0 && out->levels < CS_TYPE_LEVELS) {
    memmove(&out->level[1], &out->level[0], out->levels * sizeof out->level[0]);
    out->levels++;
    out->level[0].name[0] = '\0';
    if (!read_level(import, token, out->level[0].name, sizeof out->level[0].name, &token))
      return false;
    out->level[0].arity = split_arity(out->level[0].name);
  }
  if (out->levels > 0) split_namespace(out->level[0].name, out->space, sizeof out->space);
  return out->levels > 0;
}

static void write_args(const struct cs_type_args *args, unsigned from, unsigned to,
                       struct cs_text_out *out) {
  cs_text_add_char(out, '<');
  for (unsigned i = from; i < to; i++) {
    if (i > from) cs_text_add_char(out, ',');
    cs_text_add(out, i < args->count ? args->text[i] : "...");
    if (i >= args->count) break;
  }
  cs_text_add_char(out, '>');
}

void cs_type_write(const struct cs_type_name *name, const struct cs_type_args *args,
                   struct cs_text_out *out) {
  unsigned used = 0;
  for (unsigned i = 0; i < name->levels; i++) {
    unsigned arity = name->level[i].arity;
    if (i > 0) cs_text_add_char(out, '.');
    cs_text_add(out, name->level[i].name);
    if (args != NULL && arity > 0) write_args(args, used, used + arity, out);
    used += arity;
  }
}

void cs_type_write_short(const struct cs_type_name *name, const struct cs_type_args *args,
                         struct cs_text_out *out) {
  const char *keyword = NULL;
  if (name->levels == 1 && strcmp(name->space, "System") == 0)
    keyword = cs_keyword_of_type(name->level[0].name, strlen(name->level[0].name));
  if (keyword != NULL)
    cs_text_add(out, keyword);
  else
    cs_type_write(name, args, out);
}

void cs_type_params(IMetaDataImport2 *import, mdToken owner, struct cs_type_args *out) {
  HCORENUM params = NULL;
  mdGenericParam param;
  ULONG got = 0;
  out->count = 0;
  while (out->count < CS_TYPE_ARGS &&
         import->lpVtbl->EnumGenericParams(import, &params, owner, &param, 1, &got) == S_OK &&
         got == 1) {
    WCHAR wide[NAME_UNITS];
    ULONG len = 0, sequence = 0;
    struct cs_text_out text = cs_text_begin(out->text[out->count], sizeof out->text[0]);
    if (SUCCEEDED(import->lpVtbl->GetGenericParamProps(import, param, &sequence, NULL, NULL, NULL,
                                                       wide, NAME_UNITS, &len)))
      cs_text_add_utf16(&text, wide, units_of(len, NAME_UNITS));
    out->count++;
  }
  if (params != NULL) import->lpVtbl->CloseEnum(import, params);
}

struct class {
  struct cs_type_name name;
  struct cs_type_args args;
};

// Reads a class that has metadata. `nesting` bounds how deep its type arguments are written; 0:
// they keep the names of their parameters. Returns false if the class has no metadata.
static bool read_class(ICorProfilerInfo15 *info, ClassID class_id, unsigned nesting,
                       struct class *out) {
  ModuleID module = 0;
  mdTypeDef token = 0;
  ClassID ids[CS_TYPE_ARGS];
  ULONG32 count = 0;
  IMetaDataImport2 *import = NULL;
  if (FAILED(info->lpVtbl->GetClassIDInfo2(info, class_id, &module, &token, NULL, CS_TYPE_ARGS,
                                           &count, ids)) ||
      module == 0 ||
      info->lpVtbl->GetModuleMetaData(info, module, ofRead, &IID_IMetaDataImport2,
                                      (void **)&import) != S_OK)
    return false;
  bool ok = cs_type_read(import, token, &out->name);
  if (ok) {
    cs_type_params(import, token, &out->args);
    if (nesting > 0)
      cs_type_instantiate(info, ids, count < CS_TYPE_ARGS ? count : CS_TYPE_ARGS, nesting,
                          &out->args);
  }
  (void)import->lpVtbl->Release(import);
  return ok;
}

void cs_type_write_ranks(ULONG rank, struct cs_text_out *out) {
  cs_text_add_char(out, '[');
  for (ULONG i = 1; i < rank && i < 32; i++) cs_text_add_char(out, ',');
  cs_text_add_char(out, ']');
}

static void write_array(ICorProfilerInfo15 *info, CorElementType element, ClassID element_class,
                        ULONG rank, unsigned nesting, struct cs_text_out *out) {
  const char *keyword = cs_keyword_of_element(element);
  if (keyword != NULL)
    cs_text_add(out, keyword);
  else
    cs_class_write(info, element_class, nesting - 1, out);
  cs_type_write_ranks(rank, out);
}

bool cs_class_write_whole(ICorProfilerInfo15 *info, ClassID class_id, struct cs_text_out *out) {
  enum { MOST_RANKS = 4 };
  ULONG rank[MOST_RANKS];
  unsigned ranks = 0;
  ClassID at = class_id, element_class = 0;
  CorElementType element = 0;
  while (ranks < MOST_RANKS &&
         info->lpVtbl->IsArrayClass(info, at, &element, &element_class, &rank[ranks]) == S_OK) {
    ranks++;
    at = element_class;
  }
  struct class read;
  if (at == 0 || !read_class(info, at, 0, &read)) return false;
  cs_text_add(out, read.name.space);
  if (read.name.space[0] != '\0') cs_text_add_char(out, '.');
  cs_type_write(&read.name, &read.args, out);
  for (unsigned i = 0; i < ranks; i++) cs_type_write_ranks(rank[i], out);
  return true;
}

void cs_class_write(ICorProfilerInfo15 *info, ClassID class_id, unsigned nesting,
                    struct cs_text_out *out) {
  CorElementType element = 0;
  ClassID element_class = 0;
  ULONG rank = 0;
  struct class read;
  if (class_id == 0 || nesting == 0) {
    cs_text_add(out, class_id == 0 ? "?" : "...");
    return;
  }
  if (info->lpVtbl->IsArrayClass(info, class_id, &element, &element_class, &rank) == S_OK)
    write_array(info, element, element_class, rank, nesting, out);
  else if (read_class(info, class_id, nesting, &read))
    cs_type_write_short(&read.name, &read.args, out);
  else
    cs_text_add(out, "?");
}

void cs_type_instantiate(ICorProfilerInfo15 *info, const ClassID ids[], unsigned count,
                         unsigned nesting, struct cs_type_args *args) {
  for (unsigned i = 0; i < count && i < args->count; i++) {
    char text[sizeof args->text[0]];
    struct cs_text_out out = cs_text_begin(text, sizeof text);
    if (ids[i] == 0) continue;
    cs_class_write(info, ids[i], nesting - 1, &out);
    if (strcmp(text, "__Canon") != 0) memcpy(args->text[i], text, sizeof text);
  }
}
