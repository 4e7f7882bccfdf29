// SPDX-License-Identifier: MIT
// What a CLR made of data structures (support/fake_clr.h) has of its own on each architecture.
#pragma once

#include <string.h>

#include "base/regs.h"
#include "contract/layout.h"

enum {
  FAKE_ENTRY = 12,  // bytes of a RUNTIME_FUNCTION
  FAKE_STEP = 1,    // bytes: functions begin and end at multiples of it
  // The function of fake_frame_code: words of its frame, and which of them has the return address.
  FAKE_FRAME = 5,
  FAKE_RETURN = 4,
  AFTER_CALL = 16,
  SECOND_CALL = 32,  // behind an indirect call
  AFTER_NO_CALL = 3,
  FAKE_SAVED = CS_RBX,  // a register that calls preserve, and that is no frame pointer
};

static const uint8_t fake_leaf_info[] = {1, 0, 0, 0};
static const uint8_t fake_frame_info[] = {1, 4, 1, 0, 4, 0x32, 0, 0};   // sub rsp, 0x20
static const uint8_t fake_larger_info[] = {1, 4, 1, 0, 4, 0x72, 0, 0};  // sub rsp, 0x40

// sub rsp, 0x20; ...; call (ends at AFTER_CALL); ...; call [rip + n] (ends at SECOND_CALL); ...
static inline void fake_frame_code(uint8_t code[64]) {
  memset(code, 0x90, 64);
  memcpy(code, "\x48\x83\xEC\x20", 4);
  code[AFTER_CALL - 5] = 0xE8;
  memcpy(code + SECOND_CALL - 6, "\xFF\x15\x00\x00\x00", 5);
}

static inline void fake_entry(uint32_t entry[FAKE_ENTRY / 4], uint32_t begin, uint32_t end,
                              uint32_t unwind_data) {
  entry[0] = begin;
  entry[1] = end;
  entry[2] = unwind_data;
}

// Completes a copy of unwind data for a function of `size` bytes.
static inline void fake_fit(uint8_t *unwind_info, uint32_t size) {
  (void)unwind_info;
  (void)size;
}

static inline void fake_set_machine(struct cs_layout *l) {
  l->runtime_function.size = FAKE_ENTRY;
  l->runtime_function.end = 4;
  l->runtime_function.unwind_data = 8;
  l->transition_block.size = 104;
  l->transition_block.return_address = 96;
  l->transition_block.callee_saved_registers = 48;
  l->callee_saved.r13 = 8;
  l->callee_saved.r14 = 16;
  l->callee_saved.r15 = 24;
  l->callee_saved.rbx = 32;
  l->callee_saved.rbp = 40;
}
