// SPDX-License-Identifier: MIT
// What each instruction of a function does to its frame, found by following the function's code
// from its entry, without reading any unwind data: where the frame's caller is, at every
// instruction that the code reaches, including prologs and epilogs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { STEP_SAVED = 6 };  // rbx rbp r12 r13 r14 r15
extern const uint8_t step_register[STEP_SAVED];

struct step_state {
  bool reached;
  bool conflict;      // two ways lead here with different frames: nothing is said
  bool rsp_known;     // cfa - rsp is rsp_below
  bool rbp_is_frame;  // cfa - rbp is rbp_below
  int32_t rsp_below, rbp_below;
  bool own[STEP_SAVED];        // the register still has its caller's value
  uint32_t saved[STEP_SAVED];  // cfa - address where the caller's value is; 0: nowhere
};

struct step_instruction {
  uint32_t offset, size;
  bool call;
  struct step_state state;  // before it
};

struct steps {
  struct step_instruction *list;
  uint32_t count, capacity;
};

// Follows `size` bytes of `code`. Returns false if memory runs out or bytes are not instructions.
bool steps_follow(struct steps *steps, const uint8_t *code, uint32_t size);
void steps_free(struct steps *steps);
