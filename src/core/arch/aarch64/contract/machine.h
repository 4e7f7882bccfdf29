// SPDX-License-Identifier: MIT
// What the runtime's data contract describes differently on each architecture: the RUNTIME_FUNCTION
// that refers to a function's unwind data, and the registers that its stubs save. Signal-safe: yes.
#pragma once

#include "base/base.h"

#define CS_RUNTIME_FUNCTION_BYTES 8u
enum { CS_CONTEXT_MIN = 912 };  // bytes: the part of a CONTEXT that all runtimes share
#define CS_CONTEXT_MIN_TEXT "912"
struct cs_runtime_function {  // offsets
  uint32_t size, begin, unwind_data;
};
struct cs_callee_saved {  // the same
  uint32_t size, fp, lr, x[10];
};

// The fields of these in the descriptor, for a table of F(type, name, member).
#define CS_MACHINE_FIELDS                                    \
  F("HijackArgs", "Fp", hijack_args.callee_saved_registers), \
      F("CalleeSavedRegisters", "Fp", callee_saved.fp),      \
      F("CalleeSavedRegisters", "Lr", callee_saved.lr),      \
      F("CalleeSavedRegisters", "X19", callee_saved.x[0]),   \
      F("CalleeSavedRegisters", "X20", callee_saved.x[1]),   \
      F("CalleeSavedRegisters", "X21", callee_saved.x[2]),   \
      F("CalleeSavedRegisters", "X22", callee_saved.x[3]),   \
      F("CalleeSavedRegisters", "X23", callee_saved.x[4]),   \
      F("CalleeSavedRegisters", "X24", callee_saved.x[5]),   \
      F("CalleeSavedRegisters", "X25", callee_saved.x[6]),   \
      F("CalleeSavedRegisters", "X26", callee_saved.x[7]),   \
      F("CalleeSavedRegisters", "X27", callee_saved.x[8]),   \
      F("CalleeSavedRegisters", "X28", callee_saved.x[9])
#define CS_MACHINE_MEMBERS \
  M("RuntimeFunction.UnwindData", runtime_function.unwind_data, 4, CS_RUNTIME_FUNCTION_BYTES)

// Unwind data is a word in the RUNTIME_FUNCTION itself ("packed"), if its low bits say so, or a
// record in .xdata. Both have the function's length, in instructions.
enum { CS_UNWIND_PACKED = 3 };  // a mask

// Returns whether the end of a function has to be computed from the first word of its unwind data.
static inline bool cs_end_is_in_unwind_data(uint32_t unwind_data) {
  return (unwind_data & CS_UNWIND_PACKED) == 0;
}
// Returns the end of the function whose RUNTIME_FUNCTION is `raw`, relative to the same base as the
// other addresses there. `first`: the first word of its unwind data, if it is needed.
static inline uint32_t cs_function_end(const struct cs_runtime_function *at, const uint32_t *raw,
                                       uint32_t first) {
  uint32_t begin = raw[at->begin / 4], data = raw[at->unwind_data / 4];
  return begin + (cs_end_is_in_unwind_data(data) ? (first & 0x3FFFF) * 4 : (data >> 2 & 0x7FF) * 4);
}
// Returns whether unwind data that begins with this word has the only known version, 0.
static inline bool cs_unwind_data_is_known(uint32_t unwind_data, uint32_t first) {
  return !cs_end_is_in_unwind_data(unwind_data) || (first >> 18 & 3) == 0;
}
