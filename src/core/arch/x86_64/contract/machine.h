// SPDX-License-Identifier: MIT
// What the runtime's data contract describes differently on each architecture: the RUNTIME_FUNCTION
// that refers to a function's unwind data, and the registers that its stubs save. Signal-safe: yes.
#pragma once

#include "base/base.h"

#define CS_RUNTIME_FUNCTION_BYTES 12u
enum { CS_CONTEXT_MIN = 1232 };  // bytes: the part of a CONTEXT that all runtimes share
#define CS_CONTEXT_MIN_TEXT "1,232"
struct cs_runtime_function {  // offsets
  uint32_t size, begin, end, unwind_data;
};
struct cs_callee_saved {  // the same
  uint32_t size, r12, r13, r14, r15, rbx, rbp;
};

// The fields of these in the descriptor, for a table of F(type, name, member).
#define CS_MACHINE_FIELDS                                                      \
  F("HijackArgs", "CalleeSavedRegisters", hijack_args.callee_saved_registers), \
      F("RuntimeFunction", "EndAddress", runtime_function.end),                \
      F("CalleeSavedRegisters", "R12", callee_saved.r12),                      \
      F("CalleeSavedRegisters", "R13", callee_saved.r13),                      \
      F("CalleeSavedRegisters", "R14", callee_saved.r14),                      \
      F("CalleeSavedRegisters", "R15", callee_saved.r15),                      \
      F("CalleeSavedRegisters", "Rbx", callee_saved.rbx),                      \
      F("CalleeSavedRegisters", "Rbp", callee_saved.rbp)
// Members whose offsets index a copy of the structure, for a table of M(name, member, ...).
#define CS_MACHINE_MEMBERS \
  M("RuntimeFunction.EndAddress", runtime_function.end, 4, CS_RUNTIME_FUNCTION_BYTES)

// Returns whether the end of a function has to be computed from the first word of its unwind data.
static inline bool cs_end_is_in_unwind_data(uint32_t unwind_data) {
  (void)unwind_data;
  return false;
}
// Returns the end of the function whose RUNTIME_FUNCTION is `raw`, relative to the same base as the
// other addresses there. `first`: the first word of its unwind data, if it is needed.
static inline uint32_t cs_function_end(const struct cs_runtime_function *at, const uint32_t *raw,
                                       uint32_t first) {
  (void)first;
  return raw[at->end / 4];
}
// Returns whether unwind data that begins with this word has a known version: that of UNWIND_INFO
// (unwind/managed.c). Version 2 comes with APX.
enum { CS_SUPPORTED_UNWIND_INFO = 1 };
static inline bool cs_unwind_data_is_known(uint32_t unwind_data, uint32_t first) {
  (void)unwind_data;
  return (first & 7) == CS_SUPPORTED_UNWIND_INFO;
}
