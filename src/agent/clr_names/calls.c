// SPDX-License-Identifier: MIT
// Finds calls in IL by name. Invariants: an offset is returned only if no other call of the method
// matches; IL may come from any compiler, or from another profiler, so no operand is read before
// its size has been checked. Threads: any that may call the CLR. Signal-safe: no.
#include "clr_names/calls.h"

#include <string.h>

#include "base/bytes.h"
#include "clr_names/types.h"

enum {
  NAME_UNITS = 256,
  CALL = 0x28,
  CALLVIRT = 0x6F,
  NEWOBJ = 0x73,
  SWITCH = 0x45,
  PREFIX = 0xFE,
  TABLE_METHOD_DEF = 0x06,
  TABLE_MEMBER_REF = 0x0A,
  TABLE_TYPE_SPEC = 0x1B,
  TABLE_METHOD_SPEC = 0x2B,
  GENERIC_INSTANCE = 0x15,
};

// A method by name, which is the same in its own module's metadata and in other modules'.
struct method {
  WCHAR name[NAME_UNITS];
  struct cs_type_name type;
};

struct metadata {
  IMetaDataImport2 *import;
  mdToken token;
};

static bool open_metadata(ICorProfilerInfo15 *info, FunctionID function, struct metadata *m) {
  BOOL dynamic = 0;
  m->import = NULL;
  if (info->lpVtbl->IsFunctionDynamic(info, function, &dynamic) != S_OK || dynamic) return false;
  return SUCCEEDED(info->lpVtbl->GetTokenAndMetaDataFromFunction(
             info, function, &IID_IMetaDataImport2, (void **)&m->import, &m->token)) &&
         m->import != NULL;
}

// ---- The method that is called ----

// Returns the open type of an instantiated type (List<> of List<int>): a TypeDef or TypeRef; or 0.
static mdToken open_type(IMetaDataImport2 *import, mdToken token) {
  static const mdToken tables[] = {0x02000000, 0x01000000, 0, 0};
  PCCOR_SIGNATURE sig = NULL;
  ULONG len = 0;
  if (token >> 24 != TABLE_TYPE_SPEC) return token;
  if (import->lpVtbl->GetTypeSpecFromToken(import, token, &sig, &len) != S_OK || len < 3 ||
      sig[0] != GENERIC_INSTANCE)
    return 0;
  uint32_t coded = sig[2];
  if ((coded & 0x80) != 0) {  // two bytes; or four, which no type's number needs
    if ((coded & 0x40) != 0 || len < 4) return 0;
    coded = (coded & 0x3Fu) << 8 | sig[3];
  }
  return tables[coded & 3] != 0 ? tables[coded & 3] | coded >> 2 : 0;
}

static bool read_method(IMetaDataImport2 *import, mdToken token, struct method *out) {
  mdToken type = 0;
  ULONG len = 0;
  HRESULT hr = E_FAIL;
  if (token >> 24 == TABLE_METHOD_SPEC &&
      FAILED(import->lpVtbl->GetMethodSpecProps(import, token, &token, NULL, NULL)))
    return false;
  if (token >> 24 == TABLE_METHOD_DEF)
    hr = import->lpVtbl->GetMethodProps(import, token, &type, out->name, NAME_UNITS, &len, NULL,
                                        NULL, NULL, NULL, NULL);
  if (token >> 24 == TABLE_MEMBER_REF)
    hr = import->lpVtbl->GetMemberRefProps(import, token, &type, out->name, NAME_UNITS, &len, NULL,
                                           NULL);
  if (FAILED(hr) || len == 0 || len > NAME_UNITS) return false;
  type = open_type(import, type);
  out->type.levels = 0;
  return type == 0 || cs_type_read(import, type, &out->type);
}

static bool is_name(const WCHAR *a, const WCHAR *b) {
  while (*a != 0 && *a == *b) a++, b++;
  return *a == *b;
}

static bool is_type(const struct cs_type_name *a, const struct cs_type_name *b) {
  if (a->levels == 0 || a->levels != b->levels || strcmp(a->space, b->space) != 0) return false;
  for (unsigned i = 0; i < a->levels; i++)
    if (strcmp(a->level[i].name, b->level[i].name) != 0 || a->level[i].arity != b->level[i].arity)
      return false;
  return true;
}

// ---- Instructions ----

static unsigned operand_of_prefixed(uint8_t op) {
  switch (op) {
    case 0x06:
    case 0x07:
    case 0x15:
    case 0x16:
    case 0x1C:
      return 4;
    case 0x09:
    case 0x0A:
    case 0x0B:
    case 0x0C:
    case 0x0D:
    case 0x0E:
      return 2;
    case 0x12:
    case 0x19:
      return 1;
    default:
      return 0;
  }
}

static unsigned operand_of(uint8_t op) {
  if ((op >= 0x0E && op <= 0x13) || op == 0x1F || (op >= 0x2B && op <= 0x37) || op == 0xDE)
    return 1;
  if (op == 0x21 || op == 0x23) return 8;
  bool four = op == 0x20 || op == 0x22 || (op >= 0x27 && op <= 0x29) ||
              (op >= 0x38 && op <= 0x45) || (op >= 0x6F && op <= 0x75) || op == 0x79 ||
              (op >= 0x7B && op <= 0x81) || op == 0x8C || op == 0x8D || op == 0x8F ||
              (op >= 0xA3 && op <= 0xA5) || op == 0xC2 || op == 0xC6 || op == 0xD0 || op == 0xDD;
  return four ? 4 : 0;
}

// Returns the length of the instruction, or 0 if it does not fit.
static size_t length_of(const uint8_t *code, size_t left) {
  size_t opcode = code[0] == PREFIX ? 2 : 1;
  if (left < opcode) return 0;
  size_t size = opcode + (opcode == 2 ? operand_of_prefixed(code[1]) : operand_of(code[0]));
  if (left < size) return 0;
  if (code[0] == SWITCH) size += 4 * (size_t)cs_u32_at(code + 1);
  return left < size ? 0 : size;
}

// Finds a method's IL after its header.
static bool find_code(const uint8_t *body, size_t size, const uint8_t **code, size_t *len) {
  enum { TINY = 2, FAT = 3, FAT_BYTES = 12 };
  if (size < 1) return false;
  bool tiny = (body[0] & 3) == TINY;
  if (!tiny && ((body[0] & 3) != FAT || size < FAT_BYTES)) return false;
  *code = body + (tiny ? 1 : FAT_BYTES);
  *len = tiny ? body[0] >> 2 : cs_u32_at(body + 4);
  return *len <= size - (size_t)(*code - body);
}

// ---- The call ----

struct search {
  const struct metadata *caller, *callee;
  struct method wanted;
  unsigned exact, by_name;  // calls to that very method; virtual calls to another one of that name
  bool delegates;           // a delegate is called, which may call a method of any name
  uint32_t exact_at, by_name_at;
};

static void look_at(struct search *s, uint8_t op, mdToken token, uint32_t at) {
  static const WCHAR invoke[] = u"Invoke";
  struct method method;
  if (!read_method(s->caller->import, token, &method)) return;
  if (op == CALLVIRT && is_name(method.name, invoke)) s->delegates = true;
  if (!is_name(method.name, s->wanted.name)) return;
  if (is_type(&method.type, &s->wanted.type)) {
    s->exact++;
    s->exact_at = at;
  } else if (op == CALLVIRT) {
    s->by_name++;
    s->by_name_at = at;
  }
}

static bool search_code(struct search *s, const uint8_t *code, size_t len) {
  for (size_t at = 0; at < len;) {
    size_t size = length_of(code + at, len - at);
    if (size == 0) return false;
    if (code[at] == CALL || code[at] == CALLVIRT || code[at] == NEWOBJ)
      look_at(s, code[at], cs_u32_at(code + at + 1), (uint32_t)at);
    at += size;
  }
  return true;
}

static bool search_body(ICorProfilerInfo15 *info, FunctionID caller, struct search *s) {
  ModuleID module = 0;
  LPCBYTE body = NULL;
  ULONG size = 0;
  const uint8_t *code;
  size_t len;
  return SUCCEEDED(
             info->lpVtbl->GetFunctionInfo2(info, caller, 0, NULL, &module, NULL, 0, NULL, NULL)) &&
         SUCCEEDED(info->lpVtbl->GetILFunctionBody(info, module, s->caller->token, &body, &size)) &&
         body != NULL && find_code(body, size, &code, &len) && search_code(s, code, len);
}

bool cs_call_find(ICorProfilerInfo15 *info, FunctionID caller, FunctionID callee, uint32_t *il) {
  struct metadata of_caller, of_callee = {NULL, 0};
  struct search s = {.caller = &of_caller, .callee = &of_callee};
  bool ok = open_metadata(info, caller, &of_caller) && open_metadata(info, callee, &of_callee) &&
            read_method(of_callee.import, of_callee.token, &s.wanted) &&
            search_body(info, caller, &s);
  if (of_caller.import != NULL) (void)of_caller.import->lpVtbl->Release(of_caller.import);
  if (of_callee.import != NULL) (void)of_callee.import->lpVtbl->Release(of_callee.import);
  bool exact = s.exact == 1 && s.by_name == 0;
  bool overridden = s.exact == 0 && s.by_name == 1 && !s.delegates;
  *il = exact ? s.exact_at : s.by_name_at;
  return ok && (exact || overridden);
}
