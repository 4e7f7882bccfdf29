// SPDX-License-Identifier: MIT
// ARM64 unwind data that is laid out by hand, beside the frame that it describes: forms that no
// compiler of .NET writes on Linux, or rarely, and data that is damaged. What it does write is
// checked by twin.c, over every function of CoreLib.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/sites.h"

enum { WORDS = 1024, CFA_AT = 1000 };
#define CODE 0x500000000000ull
#define RETURN_IP 0x123456789AB0ull
#define SIGNATURE 0x0035000000000000ull  // of a signed address: in its unused bits

static uint64_t memory[WORDS];
static _Alignas(8) uint32_t xdata[128];
static struct cs_world world;
static struct cs_code code;
static uint64_t cfa;

static uint64_t caller(unsigned reg) {
  return reg == CS_LR ? RETURN_IP : 0xCA11E000 + reg * 0x10;
}

// Saves a register's value at cfa - below.
static void saved(unsigned reg, unsigned below) {
  memory[CFA_AT - below / 8] = caller(reg);
}

static void begin(uint32_t length) {
  memset(memory, 0xEE, sizeof memory);
  cfa = (uint64_t)(uintptr_t)&memory[CFA_AT];
  code = (struct cs_code){.kind = CS_CODE_JIT,
                          .begin = CODE,
                          .end = CODE + length * 4,
                          .base = (uint64_t)(uintptr_t)xdata - 0x1000,
                          .unwind_info = (uint64_t)(uintptr_t)xdata};
}

// A function of `length` instructions with these codes; `more` are the other bits of the head. The
// words of epilogs are in `scopes`.
static void full(uint32_t length, uint32_t more, const uint32_t *scopes, unsigned scope_count,
                 const uint8_t *codes, unsigned size) {
  begin(length);
  xdata[0] = length | more | scope_count << 22 | (size + 3) / 4 << 27;
  for (unsigned i = 0; i < scope_count; i++) xdata[1 + i] = scopes[i];
  memset(&xdata[1 + scope_count], 0xE4, 64);
  memcpy(&xdata[1 + scope_count], codes, size);
}
static void packed(uint32_t length, uint32_t data) {
  begin(length);
  code.unwind_info = code.base + (data | length << 2);
}

// Unwinds at instruction `at`, where sp is cfa - sp_below and fp is cfa - fp_below (0: the
// caller's). Registers of `own` still have their caller's values.
static enum cs_stop unwind(uint32_t at, bool exact, uint64_t sp_below, uint64_t fp_below,
                           cs_regmask own, struct cs_regs *regs) {
  struct cs_stack stack = {.lo = (uint64_t)(uintptr_t)memory,
                           .hi = (uint64_t)(uintptr_t)&memory[WORDS]};
  for (unsigned i = 0; i < CS_REG_COUNT; i++)
    regs->r[i] = own & CS_REG_BIT(i) ? caller(i) : 0xBAD0000 + i;
  regs->known = exact ? CS_REGS_ALL : CS_REGS_PRESERVED;
  regs->r[CS_SP] = cfa - sp_below;
  if (fp_below != 0) regs->r[CS_FP] = cfa - fp_below;
  regs->r[CS_IP] = CODE + at * 4;
  return cs_unwind_managed(&world, &code, &stack, exact, regs);
}

static void is_caller(const struct cs_regs *regs) {
  assert_int_equal(regs->r[CS_IP], RETURN_IP);
  assert_int_equal(regs->r[CS_SP], cfa);
  for (unsigned i = CS_X19; i <= CS_FP; i++) assert_int_equal(regs->r[i], caller(i));
  assert_int_equal(regs->known, CS_REGS_PRESERVED);
}

static const cs_regmask ALL = CS_REGS_PRESERVED | CS_REG_BIT(CS_LR);
#define BIT CS_REG_BIT
static void expect(uint32_t at, bool exact, uint64_t sp_below, uint64_t fp_below,
                   cs_regmask not_own) {
  struct cs_regs regs;
  assert_int_equal(unwind(at, exact, sp_below, fp_below, ALL & ~not_own, &regs), CS_STOP_NONE);
  is_caller(&regs);
}

// stp fp, lr, [sp, -64]!; mov fp, sp; stp x19, x20, [sp, 16]; ...; and its epilog in reverse, with
// which it ends, or which is in its middle.
static void a_frame_at_each_instruction(void **state) {
  (void)state;
  static const uint8_t codes[] = {0xC8, 0x02, 0xE1, 0x87, 0xE4, 0xC8, 0x02, 0x87, 0xE4};
  static const uint32_t middle[] = {10 | 5u << 22};
  const cs_regmask pair = BIT(CS_X19) | BIT(CS_X20), link = BIT(CS_FP) | BIT(CS_LR);
  for (unsigned form = 0; form < 2; form++) {
    uint32_t epilog = form == 0 ? 17 : 10;
    if (form == 0)
      full(20, 1u << 21 | 5u << 22, NULL, 0, codes, sizeof codes);
    else
      full(20, 0, middle, 1, codes, sizeof codes);
    saved(CS_FP, 64);
    saved(CS_LR, 56);
    saved(CS_X19, 48);
    saved(CS_X20, 40);
    expect(0, true, 0, 0, 0);
    expect(1, true, 64, 0, link);
    expect(2, true, 64, 64, link);
    expect(3, true, 64, 64, link | pair);
    expect(8, true, 64, 64, link | pair);
    expect(8, false, 64, 64, link | pair);
    expect(epilog, true, 64, 64, link | pair);
    expect(epilog + 1, true, 64, 64, link);
    expect(epilog + 2, true, 0, 0, 0);
    // A return address there is one of the body.
    expect(epilog, false, 64, 64, link | pair);
    if (form == 1) expect(epilog + 3, true, 64, 64, link | pair);
  }
}

static void large_frames_and_pairs_that_follow(void **state) {
  (void)state;
  // stp x19, x20, [sp, -48]!; stp x21, x22, [sp, 16]; stp fp, lr, [sp, 32]; sub sp, 1 MiB; add fp,
  // sp, 24
  static const uint8_t codes[] = {0xE2, 0x03, 0xE0, 0x00, 0x00, 0x80, 0x44, 0xE6, 0xCC, 0x05, 0xE4};
  full(40, 0, NULL, 0, codes, sizeof codes);
  saved(CS_X19, 48);
  saved(CS_X20, 40);
  saved(CS_X21, 32);
  saved(CS_X22, 24);
  saved(CS_FP, 16);
  saved(CS_LR, 8);
  const cs_regmask not_own =
      BIT(CS_X19) | BIT(CS_X20) | BIT(CS_X21) | BIT(CS_X22) | BIT(CS_FP) | BIT(CS_LR);
  // localloc: sp is anywhere, fp is known.
  expect(20, false, 48 + 2048 + 512, 48 + 2048 - 24, not_own);
  expect(20, true, 48 + 2048, 48 + 2048 - 24, not_own);
}

static void leaves_and_lost_return_addresses(void **state) {
  (void)state;
  static const uint8_t leaf[] = {0x02, 0xE4}, large[] = {0xC5, 0x01, 0xE4},
                       any[] = {0xE7, 0x1E, 0x02, 0x04, 0xE4}, pair[] = {0xD6, 0x01, 0x02, 0xE4};
  struct cs_regs regs;
  full(20, 0, NULL, 0, leaf, sizeof leaf);  // sub sp, 32
  expect(0, true, 0, 0, 0);
  expect(5, true, 32, 0, 0);
  // A call has overwritten lr, and it is saved nowhere.
  assert_int_equal(unwind(5, false, 32, 0, ALL, &regs), CS_STOP_BAD_UNWIND);
  full(20, 0, NULL, 0, large, sizeof large);  // sub sp, 0x5010
  expect(5, true, 0x5010, 0, 0);
  full(20, 0, NULL, 0, any, sizeof any);  // sub sp, 64; save_any_reg: lr at 16
  saved(CS_LR, 64 - 16);
  expect(5, false, 64, 0, BIT(CS_LR));
  full(20, 0, NULL, 0, pair, sizeof pair);  // sub sp, 32; stp x19, lr, [sp, 8]
  saved(CS_X19, 24);
  saved(CS_LR, 16);
  expect(5, false, 32, 0, BIT(CS_LR) | BIT(CS_X19));
}

static void return_addresses_are_taken_without_their_signature(void **state) {
  (void)state;
  static const uint8_t codes[] = {0xE1, 0x81, 0xFC, 0xE4};  // paciasp; stp fp, lr, [sp, -16]!; mov
  full(20, 0, NULL, 0, codes, sizeof codes);
  saved(CS_FP, 16);
  memory[CFA_AT - 1] = RETURN_IP | SIGNATURE;
  expect(8, false, 16, 16, BIT(CS_FP) | BIT(CS_LR));
  // At its second instruction lr is signed already.
  struct cs_regs regs;
  struct cs_stack stack = {.lo = (uint64_t)(uintptr_t)memory,
                           .hi = (uint64_t)(uintptr_t)&memory[WORDS]};
  (void)unwind(1, true, 0, 0, ALL, &regs);
  for (unsigned i = 0; i < CS_REG_COUNT; i++) regs.r[i] = caller(i);
  regs.known = CS_REGS_ALL;
  regs.r[CS_SP] = cfa;
  regs.r[CS_LR] = RETURN_IP | SIGNATURE;
  regs.r[CS_IP] = CODE + 4;
  assert_int_equal(cs_unwind_managed(&world, &code, &stack, true, &regs), CS_STOP_NONE);
  is_caller(&regs);
}

// A part of a function has no prolog of its own: its first instruction is in the body.
static void fragments(void **state) {
  (void)state;
  static const uint8_t codes[] = {0xE5, 0xE1, 0x81, 0xE4};
  full(20, 0, NULL, 0, codes, sizeof codes);
  saved(CS_FP, 16);
  saved(CS_LR, 8);
  expect(0, true, 16, 16, BIT(CS_FP) | BIT(CS_LR));
  expect(9, false, 16, 16, BIT(CS_FP) | BIT(CS_LR));
}

// The head of data with many codes has a second word.
static void an_extended_head(void **state) {
  (void)state;
  static const uint8_t codes[] = {0xE1, 0x81, 0xE4, 0xE4};
  full(20, 0, NULL, 0, codes, sizeof codes);
  xdata[0] = 20;
  xdata[1] = 1u << 16 | 1;
  xdata[2] = 12 | 1u << 22;  // an epilog: its codes begin after set_fp
  memcpy(&xdata[3], codes, sizeof codes);
  saved(CS_FP, 16);
  saved(CS_LR, 8);
  expect(9, true, 16, 16, BIT(CS_FP) | BIT(CS_LR));
  expect(13, true, 0, 0, 0);
}

enum {
  FUNCTION = 1,
  FRAGMENT = 2,
  FLOATS = 1 << 13,
  INTS = 1 << 16,
  HOMES = 1 << 20,
  CHAIN = 1 << 21,
  FRAME = 1 << 23,
};

static void packed_data(void **state) {
  (void)state;
  const cs_regmask pair = BIT(CS_X19) | BIT(CS_X20), link = BIT(CS_FP) | BIT(CS_LR);
  // stp x19, x20, [sp, -16]!; stp fp, lr, [sp, -48]!; mov fp, sp
  packed(30, FUNCTION | 2 * INTS | 3 * CHAIN | 4 * FRAME);
  saved(CS_X19, 16);
  saved(CS_X20, 8);
  saved(CS_FP, 64);
  saved(CS_LR, 56);
  expect(0, true, 0, 0, 0);
  expect(1, true, 16, 0, pair);
  expect(2, true, 64, 0, pair | link);
  expect(9, false, 96, 64, pair | link);
  expect(27, true, 64, 64, pair | link);  // ldp fp, lr, [sp], 48; ldp x19, x20, [sp], 16; ret
  expect(28, true, 16, 0, pair);
  expect(29, true, 0, 0, 0);
  // The same, of which this is a part.
  packed(30, FRAGMENT | 2 * INTS | 3 * CHAIN | 4 * FRAME);
  saved(CS_X19, 16);
  saved(CS_X20, 8);
  saved(CS_FP, 64);
  saved(CS_LR, 56);
  expect(0, true, 64, 64, pair | link);
  expect(29, true, 64, 64, pair | link);
  // sub sp, 16; stp x19, lr, [sp]; sub sp, 32
  packed(30, FUNCTION | 1 * INTS | 1 * CHAIN | 3 * FRAME);
  saved(CS_X19, 16);
  saved(CS_LR, 8);
  expect(1, true, 16, 0, 0);
  expect(2, true, 16, 0, BIT(CS_X19) | BIT(CS_LR));
  expect(9, false, 48, 0, BIT(CS_X19) | BIT(CS_LR));
  // paciasp; stp x19, x20, [sp, -128]!; str x21, [sp, 16]; stp d8, d9, [sp, 24]; homes; sub sp,
  // 640; stp fp, lr, [sp]; mov fp, sp. In its epilog, there are no homes.
  packed(40, FUNCTION | 3 * INTS | 1 * FLOATS | HOMES | 2 * CHAIN | 48 * FRAME);
  const unsigned area = (3 + 2 + 8 + 1) / 2 * 16;
  saved(CS_X19, area);
  saved(CS_X20, area - 8);
  saved(CS_X21, area - 16);
  saved(CS_FP, 768);
  memory[CFA_AT - 760 / 8] = RETURN_IP | SIGNATURE;
  const cs_regmask three = pair | BIT(CS_X21);
  expect(1, true, 0, 0, 0);
  expect(2, true, area, 0, pair);
  expect(3, true, area, 0, three);
  expect(8, true, area, 0, three);
  expect(20, false, 768, 768, three | link);
  expect(40 - 7, true, 768, 768, three | link);
  expect(40 - 1, true, 0, 0, 0);
}

static void damaged_data_is_refused(void **state) {
  (void)state;
  struct cs_regs regs;
  static const uint8_t reserved[] = {0xE9, 0xE4}, endless[] = {0xE3, 0xE3, 0xE3, 0xE3},
                       cut[] = {0xE3, 0xE3, 0xE3, 0xC8}, odd[] = {0xE6, 0xD0, 0x00, 0xE4},
                       beyond[] = {0xE7, 0x5F, 0x00, 0xE4};
  static const struct {
    const uint8_t *codes;
    unsigned size;
    uint32_t more;
    int stop;
  } cases[] = {
      {reserved, sizeof reserved, 0, CS_STOP_BAD_UNWIND},
      {endless, sizeof endless, 0, CS_STOP_BAD_UNWIND},
      {cut, sizeof cut, 0, CS_STOP_BAD_UNWIND},
      {odd, sizeof odd, 0, CS_STOP_BAD_UNWIND},
      {beyond, sizeof beyond, 0, CS_STOP_BAD_SP},
      {reserved + 1, 1, 1u << 18, CS_STOP_UNWIND_VERSION},
  };
  for (unsigned i = 0; i < CS_COUNT(cases); i++) {
    full(20, cases[i].more, NULL, 0, cases[i].codes, cases[i].size);
    assert_int_equal(unwind(9, true, 64, 64, ALL, &regs), cases[i].stop);
    assert_int_equal(regs.r[CS_IP], CODE + 9 * 4);
    assert_int_equal(regs.r[CS_SP], cfa - 64);
  }
  packed(20, 3);
  assert_int_equal(unwind(9, true, 64, 64, ALL, &regs), CS_STOP_BAD_UNWIND);
  // A frame that reaches beyond the stack.
  static const uint8_t far[] = {0xE1, 0x87, 0xE4};
  full(20, 0, NULL, 0, far, sizeof far);
  assert_int_equal(unwind(9, true, 64, 1u << 20, ALL, &regs), CS_STOP_BAD_SP);
  // No instruction begins there.
  regs.r[CS_IP] = CODE + 2;
  struct cs_stack stack = {.lo = 0, .hi = 1};
  assert_int_equal(cs_unwind_managed(&world, &code, &stack, true, &regs), CS_STOP_BAD_UNWIND);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_frame_at_each_instruction),
      cmocka_unit_test(large_frames_and_pairs_that_follow),
      cmocka_unit_test(leaves_and_lost_return_addresses),
      cmocka_unit_test(return_addresses_are_taken_without_their_signature),
      cmocka_unit_test(fragments),
      cmocka_unit_test(an_extended_head),
      cmocka_unit_test(packed_data),
      cmocka_unit_test(damaged_data_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
