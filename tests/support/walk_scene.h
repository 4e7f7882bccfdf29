// SPDX-License-Identifier: MIT
// A stack laid out by hand, in a CLR made of data structures, and walks over it.
#pragma once

#include "support/fake_clr.h"

enum { WORDS = 1 << 16, THREAD = 512 };
extern uint64_t words[WORDS];

struct scene {
  struct fake_clr clr;
  struct cs_stack stack;
  struct cs_walk walk;
  uint64_t method;  // that of fake_frame_code
  uint64_t stub;    // 24 bytes
  uint8_t *thread;  // a Thread
};
extern struct scene scene;

int scene_setup(void **state);
int scene_teardown(void **state);
void begin_walk(uint64_t ip, uint64_t sp, uint32_t depth);
void begin_at(const struct cs_regs *regs);
uint64_t sp_of(unsigned word);
// Lays out `n` frames of the method, each called by the next, from words[at] up, and then a zero
// return address.
void lay_recursion(unsigned at, unsigned n);
unsigned count_frames(void);

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
