// SPDX-License-Identifier: MIT
// Walks out of code without unwind data: the runtime's stubs, and glibc's clone.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "images/images.h"
#include "support/walk_scene.h"

// A stub may have pushed nothing, one word or two; words that are not return addresses do not
// count.
static void finds_a_stubs_caller(void **state) {
  (void)state;
  for (unsigned pushed = 0; pushed <= 2; pushed++) {
    struct cs_frame frame;
    memset(words, 0, sizeof words);
    words[100] = scene.method + AFTER_NO_CALL;  // managed, but not after a call
    words[101] = 0x7777;
    words[100 + pushed] = scene.method + (pushed == 1 ? SECOND_CALL : AFTER_CALL);
    lay_recursion(101 + pushed, 3);
    begin_walk(scene.stub + 4, sp_of(100), 0);
    assert_true(cs_walk_next(&scene.walk, &frame));
    assert_int_equal(frame.code.kind, CS_CODE_STUB);
    assert_true(cs_walk_next(&scene.walk, &frame));
    assert_int_equal(frame.regs.r[CS_SP], sp_of(101 + pushed));
    assert_int_equal(count_frames(), 2);
    assert_true(cs_walk_complete(&scene.walk));
  }
}

static void does_not_guess_a_stubs_caller(void **state) {
  (void)state;
  words[100] = scene.method + AFTER_NO_CALL;
  words[103] = scene.method + 5;
  begin_walk(scene.stub + 4, sp_of(100), 0);
  assert_int_equal(count_frames(), 1);
  assert_int_equal(scene.walk.stop, CS_STOP_STUB);
}

// glibc's clone has no rule after its system call. In the parent the return address is on top of
// the stack; the child has no caller.
static void finds_the_caller_of_clone(void **state) {
  (void)state;
  static const uint8_t clone_code[] = {0x0F, 0x05, 0x48, 0x85, 0xC0, 0x7C, 0x18, 0x74, 0x01, 0xC3};
  static const uint8_t starts[] = {0, 2, 5, 7, 9};
  static struct {
    struct cs_images head;
    struct cs_image image;
  } table = {.head.count = 1, .image.path = "/made/up"};
  table.image.begin = (uint64_t)(uintptr_t)clone_code;
  table.image.end = table.image.begin + sizeof clone_code;
  scene.clr.world.images = &table.head;
  words[100] = scene.method + AFTER_CALL;
  lay_recursion(101, 2);
  struct cs_regs regs = {.known = CS_REGS_ALL};
  regs.r[CS_SP] = sp_of(100);
  for (unsigned i = 0; i < CS_COUNT(starts); i++) {
    for (uint64_t rax = 0; rax < 2; rax++) {
      bool child = rax == 0 && starts[i] != 0 && starts[i] != 9;
      regs.r[CS_IP] = table.image.begin + starts[i];
      regs.r[CS_RAX] = rax;
      begin_at(&regs);
      assert_int_equal(count_frames(), child ? 1 : 3);
      assert_int_equal(scene.walk.stop, child ? CS_STOP_NO_NATIVE_RULE : CS_STOP_BASE);
    }
  }
  scene.clr.world.images = NULL;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(finds_a_stubs_caller),
      TEST(does_not_guess_a_stubs_caller),
      TEST(finds_the_caller_of_clone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
