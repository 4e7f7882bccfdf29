// SPDX-License-Identifier: MIT
// il: the IL offset of an instruction, by the map that the runtime keeps with a method's code.
// Calls the CLR, while the method is alive; not for handlers.
#pragma once

#include "life/library.h"

// Offsets are from the method's start.
struct cs_il_range {
  uint32_t il, begin, end;  // il: an IL offset, or one of CLRSNAP_IL_*
};
enum {
  CS_IL_MAP_RANGES = 16384
};                                                    // 192 KiB; a method with more has no lines
                                                      // (CS_E_IL_MAP_TOO_LARGE)
#define CS_E_IL_MAP_TOO_LARGE ((HRESULT)0x8007007Au)  // ERROR_INSUFFICIENT_BUFFER
struct cs_il_map {
  HRESULT result;  // the CLR's; if it failed, there are no ranges
  uint32_t count;
  struct cs_il_range ranges[CS_IL_MAP_RANGES];
};
void cs_il_map_read(ICorProfilerInfo15 *info, uint64_t method_start, struct cs_il_map *map);
