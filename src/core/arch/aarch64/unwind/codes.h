// SPDX-License-Identifier: MIT
// Private to the component: ARM64 unwind codes, read from .xdata or expanded from packed unwind
// data. Signal-safe: yes.
#pragma once

#include "codemap/reader.h"
#include "unwind/unwind.h"

enum cs_code_op {
  CS_OP_BAD,     // reserved, or used on Windows only
  CS_OP_NOP,     // an instruction that moves nothing, or that signs lr
  CS_OP_ALLOC,   // sp -= off
  CS_OP_SAVE,    // `count` registers from `reg` on are at [sp + off]; sp -= `push` before
  CS_OP_FLOATS,  // the same with registers that no walk follows
  CS_OP_SET_FP,  // fp = sp + off
  CS_OP_NEXT,    // saves one more pair after that of the next code
  CS_OP_END,
  CS_OP_END_C,  // the end of a fragment's own codes; those of the function's prolog follow
};
struct cs_unwind_code {
  uint8_t op, bytes;
  bool instruction;  // it stands for an instruction
  uint8_t reg, count;
  bool with_lr;  // lr is at the place after `reg`
  uint32_t off, push;
};

// The codes of one function.
struct cs_unwind_codes {
  struct cs_reader reader;
  uint64_t address;  // of the first one
  uint32_t size;     // in bytes
  uint32_t length;   // of the function, in instructions
  uint32_t scopes;   // the number of its epilogs, at scopes_at; or, if `at_end`, the first code of
  uint64_t scopes_at;  // the only one, with which the function ends
  bool at_end;
  uint32_t window_at, window_size;  // a copy of some of them
  uint8_t window[64];
};

// Finds the codes of a function from its unwind data.
CS_ISLAND enum cs_stop cs_codes_open(struct cs_unwind_codes *codes, const struct cs_reader *reader,
                                     const struct cs_code *code);
// Decodes the code at an index. Returns false if it cannot be read.
CS_ISLAND bool cs_codes_read(struct cs_unwind_codes *codes, uint32_t at,
                             struct cs_unwind_code *code);
// Finds the first code that is to be undone where `executed` instructions of the function have been
// executed; if `exact`, the next one is about to be executed, so epilogs matter.
CS_ISLAND enum cs_stop cs_codes_start(struct cs_unwind_codes *codes, uint32_t executed, bool exact,
                                      uint32_t *at);
