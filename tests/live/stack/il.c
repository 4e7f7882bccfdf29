// SPDX-License-Identifier: MIT
// A profiler that asks the runtime, when the program ends, for the IL map of every method that has
// been compiled or prepared, and holds what is read of the same code from memory (remote/il.h)
// against it at every boundary of the map. Result: "methods N places N unmapped N" and a line for
// each place that differs, in the file named by CLRSNAP_TEST_OUT. Threads: the one that ends the
// runtime. Signal-safe: no.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clr/clr.h"
#include "codemap/method.h"
#include "codemap/r2r.h"
#include "remote/il.h"
#include "remote/remote.h"

enum { MAX_RANGES = 65536, MAX_STARTS = 64, MAX_ENTRIES = 65536, MAX_IMAGES = 512 };

static ICorProfilerCallback11Vtbl vtbl;
static struct cs_callback profiler = {{&vtbl}, 1, NULL};
static ICorProfilerInfo15 *info;
static const struct cs_world *world;
static COR_DEBUG_IL_TO_NATIVE_MAP ranges[MAX_RANGES];
static FILE *out;
static struct { uint32_t jit, r2r, places, named, different, without; } seen;

// As everybody reads such a map (snapshot/il.c).
static bool by_api(ULONG32 count, uint32_t offset, uint32_t *il) {
  for (ULONG32 i = 0; i < count; i++) {
    if (offset < ranges[i].nativeStartOffset || offset >= ranges[i].nativeEndOffset) continue;
    *il = ranges[i].ilOffset;
    return true;
  }
  return false;
}

static void compare(enum cs_code_kind kind, uint64_t method, ULONG32 count, uint32_t offset) {
  uint32_t wanted = 0, got = 0;
  bool mapped = by_api(count, offset, &wanted);
  // Beyond the code nobody is ever asked.
  if (!mapped && offset >= ranges[0].nativeEndOffset && offset != 0) return;
  bool found = cs_il_find(world, kind, method, method + offset, &got);
  seen.places++;
  if (found) seen.named++;
  if (found == mapped && (!found || got == wanted)) return;
  if (++seen.different <= 20)
    (void)fprintf(out, "different: %s method 0x%llx + 0x%x: %s0x%x, not %s0x%x\n",
                  kind == CS_CODE_JIT ? "jit" : "r2r", (unsigned long long)method, offset,
                  found ? "" : "none ", got, mapped ? "" : "none ", wanted);
}

static void check_method(uint64_t method) {
  struct cs_code code = {.kind = CS_CODE_NONE};
  ULONG32 count = 0;
  if (cs_codemap_find_managed(world, method, &code) != CS_STOP_NONE || !cs_code_is_managed(&code) ||
      code.method_start != method)
    return;
  HRESULT hr =
      info->lpVtbl->GetILToNativeMapping3(info, (UINT_PTR)method, MAX_RANGES, &count, ranges);
  if (FAILED(hr) || count == 0 || count > MAX_RANGES) {
    seen.without++;
    return;
  }
  if (code.kind == CS_CODE_JIT) seen.jit++;
  if (code.kind == CS_CODE_R2R) seen.r2r++;
  uint32_t size = 0;
  for (ULONG32 i = 0; i < count; i++)
    if (ranges[i].nativeEndOffset > size) size = ranges[i].nativeEndOffset;
  for (ULONG32 i = 0; i < count; i++) {
    uint32_t begin = ranges[i].nativeStartOffset, end = ranges[i].nativeEndOffset;
    if (begin < size) compare(code.kind, method, count, begin);
    if (end > begin) compare(code.kind, method, count, end - 1);
  }
}

static void check_jitted(void) {
  ICorProfilerFunctionEnum *functions = NULL;
  COR_PRF_FUNCTION function;
  ULONG got = 0, starts_count;
  UINT_PTR starts[MAX_STARTS];
  if (info->lpVtbl->EnumJITedFunctions2(info, &functions) != S_OK) return;
  while (functions->lpVtbl->Next(functions, 1, &function, &got) == S_OK && got == 1) {
    if (info->lpVtbl->GetNativeCodeStartAddresses(info, function.functionId, function.reJitId,
                                                  MAX_STARTS, &starts_count, starts) != S_OK)
      continue;
    for (ULONG i = 0; i < starts_count && i < MAX_STARTS; i++) check_method(starts[i]);
  }
  (void)functions->lpVtbl->Release(functions);
}

// Methods of images: those that the maps from entry points to methods have.
static void check_prepared(void) {
  static uint64_t entries[MAX_ENTRIES], done[MAX_IMAGES];
  uint32_t images = 0;
  ICorProfilerModuleEnum *modules = NULL;
  ModuleID module;
  ULONG got = 0;
  if (info->lpVtbl->EnumModules(info, &modules) != S_OK) return;
  while (modules->lpVtbl->Next(modules, 1, &module, &got) == S_OK && got == 1) {
    uint64_t r2r = 0, functions = 0, base = 0;
    uint32_t begin = 0;
    const struct cs_layout *l = &world->layout;
    if (!cs_mem_u64(&world->mem, module + l->module.ready_to_run_info, &r2r) || r2r == 0 ||
        !cs_mem_u64(&world->mem, r2r + l->r2r_info.runtime_functions, &functions) ||
        functions == 0 || !cs_mem_u32(&world->mem, functions + l->runtime_function.begin, &begin))
      continue;
    bool again = false;
    for (uint32_t i = 0; i < images; i++) again = again || done[i] == functions;
    if (again || images == MAX_IMAGES) continue;
    done[images++] = functions;
    // The table lies in the image: the range that holds it says where the image begins.
    struct cs_range range;
    if (cs_range_find(world, functions, NULL, &range) != CS_STOP_NONE || !range.found) continue;
    base = range.begin;
    uint32_t n = cs_method_some_of_r2r(world, base + begin, entries, MAX_ENTRIES);
    for (uint32_t i = 0; i < n; i++) check_method(entries[i]);
  }
  (void)modules->lpVtbl->Release(modules);
}

static HRESULT initialize(ICorProfilerCallback11 *self, IUnknown *unknown) {
  (void)self;
  const char *path = getenv("CLRSNAP_TEST_OUT");
  if (path == NULL || (out = fopen(path, "we")) == NULL) return E_FAIL;
  if (unknown->lpVtbl->QueryInterface(unknown, &IID_ICorProfilerInfo15, (void **)&info) != S_OK)
    return E_FAIL;
  return info->lpVtbl->SetEventMask2(info, COR_PRF_MONITOR_JIT_COMPILATION, 0);
}

static HRESULT shutdown(ICorProfilerCallback11 *self) {
  (void)self;
  struct cs_error err = {""};
  struct cs_remote *remote = cs_remote_open(getpid(), &err);  // itself, as `stack` reads another
  if (remote == NULL) {
    (void)fprintf(out, "%s\n", err.text);
  } else {
    world = cs_remote_world(remote);
    check_jitted();
    check_prepared();
    cs_remote_close(remote);
  }
  (void)fprintf(out, "jit %u r2r %u places %u named %u different %u without %u\n", seen.jit,
                seen.r2r, seen.places, seen.named, seen.different, seen.without);
  (void)fclose(out);
  return S_OK;
}

// No drop-in here.
HRESULT cs_foreign_class_object(REFCLSID clsid, REFIID iid, void **object) {
  (void)clsid, (void)iid, (void)object;
  return CLASS_E_CLASSNOTAVAILABLE;
}

HRESULT cs_profiler_create(const GUID *iid, void **object) {
  cs_callback_defaults(&vtbl);
  vtbl.Initialize = initialize;
  vtbl.Shutdown = shutdown;
  return vtbl.QueryInterface(&profiler.base, iid, object);
}
