// SPDX-License-Identifier: MIT
// FunctionID to "Namespace.Type.Method" by the metadata reader, for the proofs' reports and
// expectations. Independent of the library's own naming room on purpose. Threads: any, one lock.
// Calls the CLR, so never while a thread is held. Signal-safe: no.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "prof.h"

struct entry {
  FunctionID id;
  ModuleID module;
  DWORD attributes;  // CorMethodAttr
  char *name;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static size_t count, capacity;

static void narrow(const WCHAR *wide, size_t wide_count, char *out, size_t size) {
  size_t n = 0;
  while (n + 1 < size && n < wide_count && wide[n] != 0) {
    out[n] = wide[n] < 128 ? (char)wide[n] : '?';
    n++;
  }
  out[n] = '\0';
}

// The type's name with its enclosing types: "Outer/Inner".
static void type_name(IMetaDataImport2 *import, mdTypeDef type, char *out, size_t size) {
  WCHAR wide[512] = {0};
  DWORD flags = 0;
  mdToken extends = 0;
  ULONG length = 0;
  char own[512] = "?";
  if (SUCCEEDED(
          import->lpVtbl->GetTypeDefProps(import, type, wide, 512, &length, &flags, &extends)))
    narrow(wide, 512, own, sizeof(own));
  mdTypeDef outer = 0;
  if ((flags & 7) >= 2 && SUCCEEDED(import->lpVtbl->GetNestedClassProps(import, type, &outer))) {
    char outer_name[512];
    type_name(import, outer, outer_name, sizeof(outer_name));
    snprintf(out, size, "%s/%s", outer_name, own);
    return;
  }
  snprintf(out, size, "%s", own);
}

static bool metadata_name(FunctionID id, struct entry *entry, char *out, size_t size) {
  ClassID class_id;
  mdToken token;
  if (FAILED(
          oracle_info->lpVtbl->GetFunctionInfo(oracle_info, id, &class_id, &entry->module, &token)))
    return false;
  void *object = NULL;
  if (FAILED(oracle_info->lpVtbl->GetModuleMetaData(oracle_info, entry->module, ofRead,
                                                    &IID_IMetaDataImport, &object)) ||
      object == NULL)
    return false;
  IMetaDataImport2 *import = object;
  mdTypeDef type = 0;
  WCHAR wide[512] = {0};
  ULONG length = 0;
  HRESULT hr = import->lpVtbl->GetMethodProps(import, token, &type, wide, 512, &length,
                                              &entry->attributes, NULL, NULL, NULL, NULL);
  if (SUCCEEDED(hr)) {
    char method[512], type_text[1024];
    narrow(wide, 512, method, sizeof(method));
    type_name(import, type, type_text, sizeof(type_text));
    snprintf(out, size, "%s.%s", type_text, method);
  }
  import->lpVtbl->Release(import);
  return SUCCEEDED(hr);
}

static bool dynamic_name(FunctionID id, ModuleID *module, char *out, size_t size) {
  WCHAR wide[512] = {0};
  PCCOR_SIGNATURE signature;
  ULONG signature_size, length = 0;
  HRESULT hr = oracle_info->lpVtbl->GetDynamicFunctionInfo(oracle_info, id, module, &signature,
                                                           &signature_size, 512, &length, wide);
  if (FAILED(hr)) return false;
  char name[512];
  narrow(wide, 512, name, sizeof(name));
  snprintf(out, size, "(dynamic) %s", name);
  return true;
}

static struct entry lookup(FunctionID id) {
  for (size_t i = 0; i < count; i++) {
    if (entries[i].id == id) return entries[i];
  }
  char name[2048];
  struct entry entry = {.id = id};
  if (!metadata_name(id, &entry, name, sizeof(name)) &&
      !dynamic_name(id, &entry.module, name, sizeof(name))) {
    // The caller may not be allowed to ask here (a managed thread outside of a callback), so the
    // failure is not cached.
    entry.name = "(no name)";
    return entry;
  }
  entry.name = strdup(name);
  if (count == capacity) {
    capacity = capacity == 0 ? 256 : capacity * 2;
    entries = realloc(entries, capacity * sizeof(*entries));
    if (entries == NULL) abort();
  }
  entries[count++] = entry;
  return entry;
}

const char *oracle_function_name(FunctionID id) {
  if (id == 0) return "[native]";
  pthread_mutex_lock(&lock);
  struct entry entry = lookup(id);
  pthread_mutex_unlock(&lock);
  return entry.name;
}

bool oracle_function_is_pinvoke(FunctionID id) {
  pthread_mutex_lock(&lock);
  struct entry entry = lookup(id);
  pthread_mutex_unlock(&lock);
  return (entry.attributes & 0x2000) != 0;  // mdPinvokeImpl
}

bool oracle_function_is_ours(FunctionID id) {
  return strncmp(oracle_function_name(id), "Proofs.", 7) == 0;
}
