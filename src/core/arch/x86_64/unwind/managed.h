// SPDX-License-Identifier: MIT
// Private to the component: what the steps over managed code share. Signal-safe: yes.
#pragma once

#include "codemap/reader.h"
#include "unwind/unwind.h"

// One UNWIND_INFO, copied out of the runtime's memory.
struct cs_unwind_info {
  uint8_t version, flags, prolog_size, code_count;  // code_count is in 16-bit slots
  uint8_t frame_register, frame_offset;             // as encoded: 0 is none; offset / 16
  uint16_t codes[256];
};
enum { CS_UNWIND_CHAINED = 4 };

// A step in progress: the registers so far, and what it may read.
struct cs_step {
  const struct cs_world *world;
  const struct cs_stack *stack;
  const struct cs_code *code;
  struct cs_reader reader;  // for unwind data and code bytes
  struct cs_regs regs;
};

// Reads only the flags, for a caller without stack space for the rest.
CS_ISLAND static inline enum cs_stop cs_unwind_info_flags(const struct cs_reader *reader,
                                                          uint64_t address, uint8_t *flags) {
  uint8_t first;
  if (!cs_get(reader, address, &first, sizeof first)) return CS_STOP_UNREADABLE;
  *flags = first >> 3;
  return (first & 7) == CS_SUPPORTED_UNWIND_INFO ? CS_STOP_NONE : CS_STOP_UNWIND_VERSION;
}

// Pops a word off the stack into a register. Returns false if it is not on the stack.
CS_ISLAND static inline bool cs_step_pop(struct cs_step *step, unsigned reg) {
  uint64_t value;
  if (!cs_stack_u64(&step->world->mem, step->stack, step->regs.r[CS_RSP], &value)) return false;
  step->regs.r[CS_RSP] += 8;
  step->regs.r[reg] = value;
  step->regs.known |= CS_REG_BIT(reg);
  return true;
}

enum cs_epilog { CS_EPILOG_NO, CS_EPILOG_DONE, CS_EPILOG_BAD_SP };
// If the ip is in an epilog, carries out the rest of it, with the return (unwind/epilog.c).
CS_ISLAND enum cs_epilog cs_epilog_step(struct cs_step *step, const struct cs_unwind_info *info);
