// SPDX-License-Identifier: MIT
// What the files of the test profiler share. Result: lines "ok NAME" and "FAIL NAME: why" in the
// file named by CLRSNAP_TEST_OUT; the scripts judge.
#pragma once

#include "base/base.h"
#include "clr/clr.h"

extern ICorProfilerInfo15 *abi_info;

__attribute__((format(printf, 1, 2))) void abi_line(const char *format, ...);
void abi_check(const char *name, bool ok, HRESULT hr);
// A name as the API gives it: `len` counts the NUL.
bool abi_name_is(const WCHAR *wide, ULONG len, const char *want);
// Reads Abi.dll's metadata through both ends of IMetaDataImport2 (abi_metadata.c).
void abi_check_metadata(ModuleID module);

// Calls the runtime and demands S_OK; `hr` is the caller's.
#define CALL(method, ...)                                   \
  do {                                                      \
    hr = abi_info->lpVtbl->method(abi_info, ##__VA_ARGS__); \
    abi_check(#method, hr == S_OK, hr);                     \
  } while (0)
