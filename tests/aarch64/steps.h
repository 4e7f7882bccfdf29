// SPDX-License-Identifier: MIT
// What each instruction of an arm64 function does to its frame, found by following the function's
// code from its entry, without reading any unwind data: where the frame's caller is, at every
// instruction that the code reaches, including prologs and epilogs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { STEP_FIRST = 19, STEP_SAVED = 12 };  // x19 to x28, fp, lr
enum { STEP_FP = 10, STEP_LR = 11 };

struct step_state {
  bool reached;
  bool conflict;     // two ways lead here with different frames: nothing is said
  bool sp_known;     // cfa - sp is sp_below
  bool fp_is_frame;  // cfa - fp is fp_below
  int32_t sp_below, fp_below;
  // Where the caller's value of a register is: in itself, at cfa - saved, or (0) lost. A register
  // that has been saved counts as overwritten at once.
  bool own[STEP_SAVED];
  int32_t saved[STEP_SAVED];
  // Whether fp and lr have it although they are saved: nothing that this code knows has written to
  // them. Unwind data may count on that.
  bool fp_kept, lr_kept;
  int32_t left[STEP_SAVED];  // where a register was saved last, although it may be restored by now
};

struct steps {
  struct step_state *state;  // before each instruction
  uint32_t count;
};

// Follows `count` instructions. Returns false if memory runs out.
bool steps_follow(struct steps *steps, const uint32_t *code, uint32_t count);
bool steps_is_call(uint32_t code);
