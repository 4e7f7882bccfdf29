// SPDX-License-Identifier: MIT
// From an ip in managed code to the IL offset of its instruction, by the map that the runtime keeps
// with the code: for jitted code of every version (tier, OSR, ReJIT) and for ReadyToRun code. Calls
// the CLR (contract: C19, C20). Any thread that may do so. Signal-safe: no.
#include "snapshot/il.h"

#include <stdlib.h>

#include "life/error.h"
#include "life/start.h"
#include "signal/signal.h"

_Static_assert(sizeof(COR_DEBUG_IL_TO_NATIVE_MAP) == sizeof(struct cs_il_range), "filled directly");

void cs_il_map_read(ICorProfilerInfo15 *info, uint64_t method_start, struct cs_il_map *map) {
  COR_DEBUG_IL_TO_NATIVE_MAP *out = (COR_DEBUG_IL_TO_NATIVE_MAP *)(void *)map->ranges;
  ULONG32 wanted = 0;
  map->count = 0;
  map->result = info->lpVtbl->GetILToNativeMapping3(info, (UINT_PTR)method_start, CS_IL_MAP_RANGES,
                                                    &wanted, out);
  if (SUCCEEDED(map->result) && wanted > CS_IL_MAP_RANGES) map->result = CS_E_IL_MAP_TOO_LARGE;
  if (SUCCEEDED(map->result)) map->count = wanted;
}

// Ranges may be empty: where two IL offsets share an instruction, only one has bytes.
static bool find_il(const struct cs_il_map *map, uint32_t offset, uint32_t *il) {
  for (uint32_t i = 0; i < map->count; i++) {
    const struct cs_il_range *range = &map->ranges[i];
    if (offset < range->begin || offset >= range->end) continue;
    *il = range->il;
    return true;
  }
  return false;
}

static HRESULT il_offset(uint64_t at, ULONG32 *out, struct cs_error *err) {
  struct cs_code code = {.kind = CS_CODE_NONE};
  struct cs_il_map *map;
  uint32_t il;
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  enum cs_stop stop = cs_codemap_find_managed(&cs_library.world, at, &code);
  cs_epoch_leave(&cs_signal.epoch, parity);
  if (stop != CS_STOP_NONE || !cs_code_is_managed(&code) || at < code.method_start) {
    cs_error_set(err, "the ip is in no managed method");
    return E_INVALIDARG;
  }
  if ((map = malloc(sizeof *map)) == NULL) {
    cs_error_set(err, "no memory for a method's IL map");
    return E_OUTOFMEMORY;
  }
  cs_il_map_read(cs_library.info, code.method_start, map);
  HRESULT hr = map->result;
  if (FAILED(hr)) {
    cs_error_set(err, "the runtime has no IL map of the method (GetILToNativeMapping3: 0x%08x)",
                 (unsigned)hr);
  } else {
    uint64_t offset = at - code.method_start;
    bool found = offset <= UINT32_MAX && find_il(map, (uint32_t)offset, &il);
    *out = found ? il : CLRSNAP_IL_NO_MAPPING;
    hr = *out >= CLRSNAP_IL_EPILOG ? S_FALSE : S_OK;
  }
  free(map);
  return hr;
}

CLRSNAP_API HRESULT clrsnap_il_offset(UINT_PTR ip, uint32_t flags, ULONG32 *out) {
  struct cs_error err = {0};
  HRESULT hr = E_INVALIDARG;
  if (out == NULL || ip == 0) {
    cs_error_set(&err, "clrsnap_il_offset needs an ip and a place for the result");
  } else if (!cs_library_enter()) {
    cs_error_set(&err, "clrsnap is not running");
    hr = CORPROF_E_STACKSNAPSHOT_UNSAFE;
  } else {
    hr = cs_library_ready(&err);
    if (hr == S_OK) hr = il_offset((flags & CLRSNAP_FRAME_EXACT) != 0 ? ip : ip - 1, out, &err);
    cs_library_leave();
  }
  if (FAILED(hr)) *cs_last_error() = err;
  return hr;
}
