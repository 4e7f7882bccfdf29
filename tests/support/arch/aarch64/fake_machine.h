// SPDX-License-Identifier: MIT
// What a CLR made of data structures (support/fake_clr.h) has of its own on each architecture.
#pragma once

#include <string.h>

#include "base/regs.h"
#include "contract/layout.h"

enum {
  FAKE_ENTRY = 8,  // bytes of a RUNTIME_FUNCTION
  FAKE_STEP = 4,   // bytes: functions begin and end at multiples of it
  // The function of fake_frame_code: words of its frame, and which of them has the return address.
  FAKE_FRAME = 6,
  FAKE_RETURN = 4,
  AFTER_CALL = 16,
  SECOND_CALL = 32,  // behind an indirect call
  AFTER_NO_CALL = 4,
  FAKE_SAVED = CS_X19,  // a register that calls preserve, and that is no frame pointer
};

// The head is without the function's length: one epilog, at the end, like the prolog.
#define FAKE_HEAD 0, 0, 0x20, 0x08
static const uint8_t fake_leaf_info[] = {FAKE_HEAD, 0xE4, 0xE4, 0xE4, 0xE4};
static const uint8_t fake_frame_info[] = {FAKE_HEAD, 0xD2, 0xC4, 0x03, 0xE4};
static const uint8_t fake_larger_info[] = {FAKE_HEAD, 0xD2, 0xC4, 0x05, 0xE4};  // sub sp, sp, 0x50

// sub sp, sp, 0x30; str lr, [sp, 0x20]; ...; bl (ends at AFTER_CALL); ...; blr x1 (ends at
// SECOND_CALL); ...
static inline void fake_frame_code(uint8_t code[64]) {
  uint32_t words[16];
  for (unsigned i = 0; i < 16; i++) words[i] = 0xD503201F;  // nop
  words[0] = 0xD100C3FF;
  words[1] = 0xF90013FE;
  words[AFTER_CALL / 4 - 1] = 0x94000000;
  words[SECOND_CALL / 4 - 1] = 0xD63F0020;
  memcpy(code, words, sizeof words);
}

static inline void fake_entry(uint32_t entry[FAKE_ENTRY / 4], uint32_t begin, uint32_t end,
                              uint32_t unwind_data) {
  (void)end;
  entry[0] = begin;
  entry[1] = unwind_data;
}

// Completes a copy of unwind data for a function of `size` bytes.
static inline void fake_fit(uint8_t *unwind_info, uint32_t size) {
  uint32_t head;
  memcpy(&head, unwind_info, sizeof head);
  head |= size / 4;
  memcpy(unwind_info, &head, sizeof head);
}

static inline void fake_set_machine(struct cs_layout *l) {
  l->runtime_function.size = FAKE_ENTRY;
  l->runtime_function.unwind_data = 4;
  l->callee_saved.fp = 0;
  l->callee_saved.lr = 8;
  for (unsigned i = 0; i < CS_COUNT(l->callee_saved.x); i++) l->callee_saved.x[i] = 16 + 8 * i;
  l->transition_block.size = 176;
  l->transition_block.return_address = 8;
  l->transition_block.callee_saved_registers = 0;
}
