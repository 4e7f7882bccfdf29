// SPDX-License-Identifier: MIT
// Walks out of code without unwind data, whose caller is in lr: the runtime's stubs, glibc's clone,
// entries of PLTs, signal handlers' trampolines, and the runtime's trip wire for return addresses.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "images/images.h"
#include "support/walk_scene.h"

static struct cs_regs regs_at(uint64_t ip, uint64_t lr) {
  struct cs_regs regs = {.known = CS_REGS_ALL};
  regs.r[CS_IP] = ip;
  regs.r[CS_SP] = sp_of(100);
  regs.r[CS_LR] = lr;
  return regs;
}

static void finds_a_stubs_caller(void **state) {
  (void)state;
  struct cs_frame frame;
  lay_recursion(100, 3);
  struct cs_regs regs = regs_at(scene.stub + 4, scene.method + SECOND_CALL);
  begin_at(&regs);
  assert_true(cs_walk_next(&scene.walk, &frame));
  assert_int_equal(frame.code.kind, CS_CODE_STUB);
  assert_true(cs_walk_next(&scene.walk, &frame));
  assert_int_equal(frame.regs.r[CS_SP], sp_of(100));
  assert_int_equal(frame.regs.r[CS_IP], scene.method + SECOND_CALL);
  assert_int_equal(count_frames(), 2);
  assert_true(cs_walk_complete(&scene.walk));
}

static void does_not_guess_a_stubs_caller(void **state) {
  (void)state;
  lay_recursion(100, 3);
  words[100] = scene.method + AFTER_CALL;  // on the stack it does not count
  for (unsigned i = 0; i < 2; i++) {
    struct cs_regs regs =
        regs_at(scene.stub + 4, scene.method + (i == 0 ? AFTER_NO_CALL : AFTER_CALL));
    if (i != 0) regs.known &= ~CS_REG_BIT(CS_LR);
    begin_at(&regs);
    assert_int_equal(count_frames(), 1);
    assert_int_equal(scene.walk.stop, CS_STOP_STUB);
  }
}

// An image of this code, with rows. No file stands behind it.
static struct {
  struct cs_images head;
  struct cs_image image;
} table;

static void put_image(const void *code, size_t size) {
  memset(&table, 0, sizeof table);
  table.head.count = 1;
  table.image = (struct cs_image){.path = "/made/up", .begin = (uint64_t)(uintptr_t)code};
  table.image.end = table.image.begin + size;
  scene.clr.world.images = &table.head;
}

// glibc's clone has no rule after its system call. In the parent lr is as the call has left it; the
// child has no caller.
static void finds_the_caller_of_clone(void **state) {
  (void)state;
  static const uint32_t code[] = {0xD4000001, 0xF100001F, 0x54000060, 0x5400004B, 0xD65F03C0};
  put_image(code, sizeof code);
  lay_recursion(100, 2);
  for (unsigned i = 1; i < CS_COUNT(code); i++) {
    for (uint64_t x0 = 0; x0 < 2; x0++) {
      bool child = x0 == 0 && i + 1 < CS_COUNT(code);
      struct cs_regs regs = regs_at(table.image.begin + i * 4, scene.method + AFTER_CALL);
      regs.r[CS_X0] = x0;
      begin_at(&regs);
      assert_int_equal(count_frames(), child ? 1 : 3);
      assert_int_equal(scene.walk.stop, child ? CS_STOP_NO_NATIVE_RULE : CS_STOP_BASE);
    }
  }
  scene.clr.world.images = NULL;
}

// A PLT's first entry, which pushes x16 and lr, and the one after it.
static void finds_the_caller_of_a_plt(void **state) {
  (void)state;
  static const uint32_t code[] = {0xA9BF7BF0, 0xF0000BD0, 0xF947FE11, 0x913FE210,
                                  0xD61F0220, 0xD503201F, 0xD503201F, 0xD503201F,
                                  0xF0000BD0, 0xF9480211, 0x91100210, 0xD61F0220,
                                  0xF0000BD0, 0xF9480611, 0x91102210, 0xD61F0220};
  enum { FIRST = 5, SECOND = 8 };
  put_image(code, sizeof code);
  lay_recursion(100, 2);
  for (unsigned i = 0; i < CS_COUNT(code); i++) {
    if (i >= FIRST && i < SECOND) continue;  // nothing executes the padding
    struct cs_frame frame;
    struct cs_regs regs = regs_at(table.image.begin + i * 4, scene.method + AFTER_CALL);
    if (i >= 1 && i < FIRST) regs.r[CS_SP] = sp_of(98);
    begin_at(&regs);
    assert_true(cs_walk_next(&scene.walk, &frame));
    assert_true(cs_walk_next(&scene.walk, &frame));
    assert_int_equal(frame.regs.r[CS_IP], scene.method + AFTER_CALL);
    assert_int_equal(frame.regs.r[CS_SP], sp_of(100));
    assert_int_equal(count_frames(), 1);
    assert_true(cs_walk_complete(&scene.walk));
  }
  scene.clr.world.images = NULL;
}

// The kernel's trampoline, at both of its instructions: the caller is what the signal interrupted.
static void finds_what_a_signal_interrupted(void **state) {
  (void)state;
  enum { FRAME = 20, REGS = (128 + 184) / 8, INTERRUPTED = 200 };
  static const uint32_t code[] = {0xD2801168, 0xD4000001, 0xD4000001, 0};
  put_image(code, sizeof code);
  for (unsigned i = 0; i < 3; i++) {
    struct cs_frame frame;
    struct cs_regs regs = regs_at(table.image.begin + i * 4, 0);
    regs.r[CS_SP] = sp_of(FRAME);
    words[FRAME + REGS + CS_SP] = sp_of(INTERRUPTED);
    words[FRAME + REGS + CS_IP] = scene.method + AFTER_CALL;
    begin_at(&regs);
    assert_true(cs_walk_next(&scene.walk, &frame));
    bool found = cs_walk_next(&scene.walk, &frame);
    assert_int_equal(found, i < 2);
    if (!found) continue;
    assert_true(frame.flags & CS_FRAME_EXACT);
    assert_int_equal(frame.regs.r[CS_SP], sp_of(INTERRUPTED));
    assert_int_equal(frame.regs.r[CS_IP], scene.method + AFTER_CALL);
  }
  scene.clr.world.images = NULL;
}

// OnHijackTripThread: `ret` has led to its first instruction, with lr as it was loaded from the
// method's frame; then it pushes a frame of its own, which has that address, until the runtime has
// put the true one there. The slot is in the method's frame, which has been popped.
static void sees_through_the_trip_wire(void **state) {
  (void)state;
  enum { POPPED = 6, OWN = 4, HAS_SET = 4 };
  static uint32_t code[64];
  static const uint32_t row_ip[] = {0, 16}, block_row[] = {0};
  static const uint16_t row_rule[] = {0, 1};
  static const struct cs_cfi_rule rules[] = {
      {.cfa_how = CS_CFA_REG,
       .cfa_reg = CS_SP,
       .slot[CS_CFI_RA] = {.how = CS_CFI_IN_REG, .off = CS_LR}},
      {.cfa_how = CS_CFA_REG,
       .cfa_reg = CS_SP,
       .cfa_off = OWN * 8,
       .slot[CS_CFI_RA] = {.how = CS_CFI_AT_CFA, .off = -OWN * 8 + 8}},
  };
  struct cs_layout *layout = &scene.clr.world.layout;
  put_image(code, sizeof code);
  table.head.rules = rules;
  table.image.row_ip = row_ip;
  table.image.row_rule = row_rule;
  table.image.row_count = 2;
  table.image.block_row = block_row;
  table.image.block_count = 1;
  table.image.block_bits = CS_BLOCK_BITS;
  table.image.is_coreclr = true;
  uint64_t wire = table.image.begin, slot = sp_of(100 - POPPED + 1),
           address = scene.method + AFTER_CALL;
  layout->coreclr_begin = table.image.begin;
  layout->coreclr_end = table.image.end;
  layout->hijack.hijack_return_address = 152;
  layout->hijack.hijack_slot = 160;
  memcpy(scene.thread + 152, &address, 8);
  memcpy(scene.thread + 160, &slot, 8);
  lay_recursion(100, 3);
  words[100 - OWN + 1] = wire;
  for (unsigned at = 0; at <= 16; at += 4) {
    struct cs_frame frame;
    struct cs_regs regs = regs_at(wire + at, wire);
    if (at == 16) regs.r[CS_SP] = sp_of(100 - OWN);
    begin_at(&regs);
    assert_true(cs_walk_next(&scene.walk, &frame));
    assert_true(cs_walk_next(&scene.walk, &frame));
    assert_int_equal(frame.flags, CS_FRAME_HIJACKED);
    assert_int_equal(frame.regs.r[CS_IP], address);
    assert_int_equal(frame.regs.r[CS_SP], sp_of(100));
    assert_int_equal(count_frames(), 2);
    assert_true(cs_walk_complete(&scene.walk));
  }
  // Other code of the runtime that seems to return to no call keeps its own return address.
  slot = sp_of(300);
  memcpy(scene.thread + 160, &slot, 8);
  struct cs_regs regs = regs_at(wire, wire);
  begin_at(&regs);
  (void)count_frames();
  assert_int_not_equal(scene.walk.stop, CS_STOP_BASE);
  scene.clr.world.images = NULL;
}

// The next call in the code is the one that the Frame was filled in for, unless a branch is before
// it: then the helper's return address is all that is known.
static void trusts_no_call_after_a_branch(void **state) {
  (void)state;
  enum { BRANCH = 0x54000040, NOP = 0xD503201F };  // b.eq
  static uint8_t code[64];
  fake_frame_code(code);
  struct fake_function f = {code, sizeof code, fake_frame_info, sizeof fake_frame_info};
  uint64_t ready, head = sp_of(130);
  (void)fake_clr_add_image(&scene.clr, &f, 1, &ready);
  lay_recursion(200, 1);
  const uint64_t words_of_frame[] = {1, ~0ull, 0, sp_of(200), ready + AFTER_CALL};
  memcpy(&words[130], words_of_frame, sizeof words_of_frame);
  memcpy(scene.thread + 8, &head, 8);
  for (unsigned i = 0; i < 2; i++) {
    struct cs_frame frame;
    struct cs_regs regs = regs_at(0x5000, 0);
    uint32_t between = i == 0 ? NOP : BRANCH;
    memcpy((void *)(uintptr_t)(ready + AFTER_CALL + 4), &between, sizeof between);
    begin_at(&regs);
    assert_true(cs_walk_next(&scene.walk, &frame));
    assert_true(cs_walk_next(&scene.walk, &frame));
    assert_int_equal(frame.regs.r[CS_IP], ready + (i == 0 ? SECOND_CALL : AFTER_CALL));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(finds_a_stubs_caller),
      TEST(does_not_guess_a_stubs_caller),
      TEST(finds_the_caller_of_clone),
      TEST(finds_the_caller_of_a_plt),
      TEST(finds_what_a_signal_interrupted),
      TEST(sees_through_the_trip_wire),
      TEST(trusts_no_call_after_a_branch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
