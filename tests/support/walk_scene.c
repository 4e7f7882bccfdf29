// SPDX-License-Identifier: MIT
// See walk_scene.h. The test's own thread only.
#include "support/walk_scene.h"

#include <string.h>

uint64_t words[WORDS];
struct scene scene;

int scene_setup(void **state) {
  static uint8_t code[64], stub[24];
  fake_frame_code(code);
  memset(words, 0, sizeof words);
  fake_clr_init(&scene.clr);
  struct fake_function f = {code, sizeof code, fake_frame_info, sizeof fake_frame_info};
  scene.method = fake_clr_add_method(&scene.clr, &f, 1, 0x1234, 0);
  scene.stub = fake_clr_add_stub(&scene.clr, 5, stub, sizeof stub);
  scene.stack.lo = (uint64_t)(uintptr_t)words;
  scene.stack.hi = (uint64_t)(uintptr_t)(words + WORDS);
  scene.thread = fake_clr_alloc(&scene.clr, THREAD);
  memset(scene.thread + 8, 0xFF, 8);  // no explicit Frame
  *state = &scene;
  return 0;
}

int scene_teardown(void **state) {
  fake_clr_free(&((struct scene *)*state)->clr);
  return 0;
}

void begin_at(const struct cs_regs *regs) {
  cs_walk_begin(&scene.walk, &scene.clr.world, regs, &scene.stack,
                (uint64_t)(uintptr_t)scene.thread, 0);
}

void begin_walk(uint64_t ip, uint64_t sp, uint32_t depth) {
  struct cs_regs regs = {.known = CS_REGS_ALL};
  regs.r[CS_IP] = ip;
  regs.r[CS_SP] = sp;
  cs_walk_begin(&scene.walk, &scene.clr.world, &regs, &scene.stack,
                (uint64_t)(uintptr_t)scene.thread, depth);
}

uint64_t sp_of(unsigned word) {
  return (uint64_t)(uintptr_t)&words[word];
}

void lay_recursion(unsigned at, unsigned n) {
  for (unsigned i = 0; i < n; i++, at += FAKE_FRAME)
    words[at + FAKE_RETURN] = i + 1 < n ? scene.method + AFTER_CALL : 0;
}

unsigned count_frames(void) {
  struct cs_frame frame;
  unsigned n = 0;
  while (cs_walk_next(&scene.walk, &frame)) n++;
  return n;
}
