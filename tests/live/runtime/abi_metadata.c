// SPDX-License-Identifier: MIT
// The test profiler's way of telling what it saw, and its reading of metadata: names and properties
// that only the right slot of IMetaDataImport2 can give, from slot 3 to slot 72. Threads: inside a
// callback; lines may come from any. Signal-safe: no.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "base/utf16.h"

ICorProfilerInfo15 *abi_info;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void abi_line(const char *format, ...) {
  const char *path = getenv("CLRSNAP_TEST_OUT");
  (void)pthread_mutex_lock(&lock);
  FILE *file = path != NULL ? fopen(path, "a") : NULL;
  if (file != NULL) {
    va_list args;
    va_start(args, format);
    (void)vfprintf(file, format, args);
    va_end(args);
    (void)fputc('\n', file);
    (void)fclose(file);
  }
  (void)pthread_mutex_unlock(&lock);
}

void abi_check(const char *name, bool ok, HRESULT hr) {
  if (ok) {
    abi_line("ok %s", name);
  } else {
    abi_line("FAIL %s: 0x%08x", name, (unsigned)hr);
  }
}
bool abi_name_is(const WCHAR *wide, ULONG len, const char *want) {
  char name[256];
  (void)cs_utf16_to_utf8(name, sizeof name, wide, len > 0 ? len - 1 : 0, NULL);
  return strcmp(name, want) == 0;
}

static void metadata_of_methods(IMetaDataImport2 *import, mdTypeDef type) {
  const IMetaDataImport2Vtbl *m = import->lpVtbl;
  HCORENUM methods = NULL;
  mdMethodDef method;
  ULONG got = 0, count = 0, found = 0;
  while (m->EnumMethods(import, &methods, type, &method, 1, &got) == S_OK && got == 1) {
    WCHAR name[128];
    ULONG len = 0, sig_len = 0, rva = 0;
    mdTypeDef owner = 0;
    PCCOR_SIGNATURE sig = NULL;
    HRESULT hr = m->GetMethodProps(import, method, &owner, name, 128, &len, NULL, &sig, &sig_len,
                                   &rva, NULL);
    if (hr != S_OK || owner != type || sig == NULL || sig_len < 3) continue;
    if (abi_name_is(name, len, "Main") || abi_name_is(name, len, "Throw")) found += rva != 0;
  }
  abi_check("CountEnum", m->CountEnum(import, methods, &count) == S_OK && count >= 3,
            (HRESULT)count);
  m->CloseEnum(import, methods);  // slot 3
  abi_check("GetMethodProps", found == 2, (HRESULT)found);
}

static void metadata_of_generics(IMetaDataImport2 *import, mdTypeDef outer) {
  const IMetaDataImport2Vtbl *m = import->lpVtbl;
  HCORENUM e = NULL;
  mdGenericParam param = 0;
  ULONG got = 0, index = 9, len = 0;
  mdToken owner = 0;
  DWORD flags = 0;
  WCHAR name[16];
  HRESULT hr = m->EnumGenericParams(import, &e, outer, &param, 1, &got);
  abi_check("EnumGenericParams slot 65", hr == S_OK && got == 1, hr);
  m->CloseEnum(import, e);
  hr = m->GetGenericParamProps(import, param, &index, &flags, &owner, NULL, name, 16, &len);
  abi_check("GetGenericParamProps",
            hr == S_OK && index == 0 && owner == outer && abi_name_is(name, len, "T"), hr);
  mdMethodSpec spec = 0;
  e = NULL;
  hr = m->EnumMethodSpecs(import, &e, 0, &spec, 1, &got);
  abi_check("EnumMethodSpecs slot 72", hr == S_OK && got == 1 && spec >> 24 == 0x2B, hr);
  m->CloseEnum(import, e);
  mdToken parent = 0;
  PCCOR_SIGNATURE sig = NULL;
  hr = m->GetMethodSpecProps(import, spec, &parent, &sig, &len);
  abi_check("GetMethodSpecProps", hr == S_OK && parent != 0 && sig != NULL && sig[0] == 0x0A, hr);
}

void abi_check_metadata(ModuleID module) {
  IMetaDataImport2 *import = NULL;
  HRESULT hr;
  CALL(GetModuleMetaData, module, ofRead, &IID_IMetaDataImport2, (void **)&import);
  if (import == NULL) return;
  const IMetaDataImport2Vtbl *m = import->lpVtbl;
  static const WCHAR program[] = {'A', 'b', 'i', '.', 'P', 'r', 'o', 'g', 'r', 'a', 'm', 0};
  static const WCHAR outer_name[] = {'O', 'u', 't', 'e', 'r', '`', '1', 0};
  WCHAR name[128];
  ULONG len = 0;
  mdTypeDef type = 0, outer = 0, enclosing = 0;
  DWORD flags = 0;
  mdToken extends = 0;
  int global = -1;
  hr = m->GetScopeProps(import, name, 128, &len, NULL);
  abi_check("GetScopeProps", hr == S_OK && abi_name_is(name, len, "Abi.dll"), hr);
  hr = m->FindTypeDefByName(import, program, 0, &type);
  abi_check("FindTypeDefByName", hr == S_OK && type >> 24 == 2, hr);
  hr = m->GetTypeDefProps(import, type, name, 128, &len, &flags, &extends);
  abi_check("GetTypeDefProps", hr == S_OK && abi_name_is(name, len, "Abi.Program") && extends != 0,
            hr);
  hr = m->FindTypeDefByName(import, outer_name, type, &outer);
  abi_check("nested FindTypeDefByName", hr == S_OK, hr);
  hr = m->GetNestedClassProps(import, outer, &enclosing);
  abi_check("GetNestedClassProps slot 62", hr == S_OK && enclosing == type, hr);
  abi_check("IsValidToken",
            m->IsValidToken(import, type) == 1 && m->IsValidToken(import, 0x02FFFFFF) == 0, 0);
  hr = m->IsGlobal(import, type, &global);
  abi_check("IsGlobal slot 64", hr == S_OK && global == 0, hr);
  hr = m->GetVersionString(import, name, 128, &len);
  abi_check("GetVersionString slot 71", hr == S_OK && len > 2 && name[0] == 'v', hr);
  metadata_of_methods(import, type);
  metadata_of_generics(import, outer);
  (void)m->Release(import);
}
