// SPDX-License-Identifier: MIT
// Code of the runtime that describes itself wrongly, laid out by hand as CoreCLR 10.0.9 has it:
// after the correction, steps out of it lead where it leads. native_twin.c does the same with the
// real code, instruction by instruction.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/cfi_private.h"
#include "native/dwarf.h"
#include "native/quirks.h"
#include "unwind/unwind.h"

enum { WRAPPER = 8, WRAPPER_8 = 10 + WRAPPER, RESTORE = 32, MACRO = 64, WORDS = 96 };
enum { STACK_WORDS = 512, RET = 0xD65F03C0, NOP = 0xD503201F };

static uint32_t text[WORDS];
static uint64_t words[STACK_WORDS];
static struct cs_rules rules;
static struct cs_rows rows;
static struct cs_regs regs;
static bool signal_frame;
static struct cs_world world;
static struct {
  struct cs_images head;
  struct cs_image image;
} table;

static uint64_t at(unsigned n) {
  return (uint64_t)(uintptr_t)&words[n];
}

static uint64_t ip_at(unsigned word) {
  return (uint64_t)(uintptr_t)&text[word];
}

// A row from this instruction on: CFA reg + off; fp, lr and perhaps x19 saved from `saved` words
// below the CFA on; 0: not saved.
static void row(unsigned word, uint8_t reg, int32_t off, int32_t saved, bool x19) {
  struct cs_cfi_rule rule;
  memset(&rule, 0, sizeof rule);
  rule.cfa_how = CS_CFA_REG;
  rule.cfa_reg = reg;
  rule.cfa_off = off;
  cs_dwarf_at_entry(&rule);
  if (saved != 0) {
    rule.slot[CS_CFI_FP].how = rule.slot[CS_CFI_RA].how = CS_CFI_AT_CFA;
    rule.slot[CS_CFI_FP].off = -saved * 8;
    rule.slot[CS_CFI_RA].off = -saved * 8 + 8;
    rule.slot[CS_CFI_X19].how = x19 ? CS_CFI_AT_CFA : CS_CFI_SAME;
    rule.slot[CS_CFI_X19].off = x19 ? -saved * 8 + 16 : 0;
  }
  assert_true(cs_rows_add(&rows, word * 4, cs_rules_intern(&rules, &rule)));
}

static void code(unsigned word, const uint32_t *what, size_t size) {
  memcpy(&text[word], what, size);
}

static void lay_wrapper(unsigned word, int32_t size) {
  uint32_t n = (uint32_t)size << 10;
  const uint32_t wrapper[] = {16,         0xD10003FF | n, 0xA9007BFD,     0x910003FD,
                              0x94001000, 0xA9407BFD,     0x910003FF | n, RET};
  code(word - 1, wrapper, sizeof wrapper);
  row(word, CS_SP, 0, 0, false);
  row(word + 1, CS_SP, size, 0, false);
  row(word + 2, CS_SP, size, size / 8, false);
  row(word + 3, CS_FP, size, size / 8, false);
  row(word + 5, CS_FP, size, 0, false);
  row(word + 6, CS_FP, 0, 0, false);
  assert_true(cs_rows_add(&rows, (word + 7) * 4, CS_NO_RULE));
}

// mov x16, x0; ldr w17, [x16]; add x16, x16, 272; ldp q0, q1, [x16]; sub x16, x16, 272; ldp x19,
// x20; ldp fp, lr; ldp x16, x17; mov sp, x16; br x17; ret
static void lay_restore(void) {
  static const uint32_t restore[] = {0xAA0003F0, 0xB9400211, 0x91044210, 0xAD400600,
                                     0xD1044210, 0xA94A5213, 0xA94F7A1D, 0xA9504610,
                                     0x9100021F, 0xD61F0220, RET};
  code(RESTORE, restore, sizeof restore);
  row(RESTORE, CS_SP, 0, 0, false);
  assert_true(cs_rows_add(&rows, (RESTORE + CS_COUNT(restore)) * 4, CS_NO_RULE));
}

// stp fp, lr, [sp, -48]!; mov fp, sp; str x19, [sp, 16]; sub sp, sp, 32; bl; cbnz; add sp, sp, 32;
// ldr x19, [sp, 16]; ldp fp, lr, [sp], 48; ret; nop; add sp, sp, 32; ldr x19, [sp, 16]; ldp fp, lr,
// [sp], 48; br x9
enum { MACRO_CALLED = 5, MACRO_RET = 9, MACRO_AFTER = 10, MACRO_BR = 14, MACRO_END = 15 };
static void lay_macro(void) {
  static const uint32_t macro[] = {0xA9BD7BFD, 0x910003FD, 0xF9000BF3, 0xD10083FF, 0x94000010,
                                   0xB50000A0, 0x910083FF, 0xF9400BF3, 0xA8C37BFD, RET,
                                   NOP,        0x910083FF, 0xF9400BF3, 0xA8C37BFD, 0xD61F0120};
  code(MACRO, macro, sizeof macro);
  row(MACRO, CS_SP, 0, 0, false);
  row(MACRO + 1, CS_SP, 48, 6, false);
  row(MACRO + 2, CS_FP, 48, 6, false);
  row(MACRO + 3, CS_FP, 48, 6, true);
  row(MACRO + 7, CS_FP, 16, 6, true);
  row(MACRO + 8, CS_FP, 16, 6, false);
  row(MACRO + 9, CS_FP, -32, 0, false);
  row(MACRO + 12, CS_FP, -64, 0, false);
  row(MACRO + 14, CS_FP, -112, 0, false);
  assert_true(cs_rows_add(&rows, (MACRO + MACRO_END) * 4, CS_NO_RULE));
}

static int setup(void **state) {
  static const uint32_t block_row[1];
  (void)state;
  for (unsigned i = 0; i < WORDS; i++) text[i] = NOP;
  if (rules.rule == NULL && !cs_rules_init(&rules)) return 1;
  cs_rows_free(&rows);
  memset(&rows, 0, sizeof rows);
  assert_true(cs_rows_add(&rows, 0, CS_NO_RULE));
  lay_wrapper(WRAPPER, 144);
  lay_wrapper(WRAPPER_8, 152);
  lay_restore();
  lay_macro();
  for (unsigned i = 0; i < STACK_WORDS; i++) words[i] = 0x5000 + i * 8;
  for (unsigned i = 0; i < CS_REG_COUNT; i++) regs.r[i] = 0x1000 + i;
  regs.known = CS_REGS_ALL;
  memset(&table, 0, sizeof table);
  table.head.count = 1;
  table.image.path = "/made/up";
  table.image.begin = ip_at(0);
  table.image.end = ip_at(WORDS);
  table.image.block_row = block_row;
  table.image.block_count = 1;
  table.image.block_bits = 31;
  cs_mem_init_self(&world.mem);
  world.images = &table.head;
  return 0;
}

static unsigned apply(void) {
  unsigned found;
  assert_true(cs_quirks_apply((const uint8_t *)text, sizeof text, &rules, &rows, &found));
  table.head.rules = rules.rule;
  table.image.row_ip = rows.ip;
  table.image.row_rule = rows.rule;
  table.image.row_count = rows.count;
  for (uint32_t i = 1; i < rows.count; i++) {
    assert_true(rows.ip[i - 1] < rows.ip[i]);
    assert_int_not_equal(rows.rule[i - 1], rows.rule[i]);
  }
  return found;
}

static enum cs_stop step(unsigned word, bool exact) {
  struct cs_stack stack = {.lo = at(0), .hi = at(STACK_WORDS)};
  struct cs_code here = {.kind = CS_CODE_NATIVE, .image = &table.image};
  regs.r[CS_IP] = ip_at(word);
  return cs_unwind_native(&world, &here, &stack, exact, &regs, &signal_frame);
}

// The caller of the wrapper was interrupted, at an ip that is not behind a call, and only its ip,
// sp and fp are known. The frame begins 128 bytes, and where sp was not aligned 8 more, below it.
static void leads_out_of_a_fault(void **state) {
  (void)state;
  for (unsigned i = 0; i < 2; i++) {
    (void)setup(NULL);
    assert_int_equal(apply(), CS_QUIRKS);
    regs.r[CS_SP] = at(100);
    regs.r[CS_FP] = at(100);
    words[100] = 0xF9;
    words[101] = 0xFA170;
    assert_int_equal(step((i == 0 ? WRAPPER : WRAPPER_8) + 4, false), CS_STOP_NONE);
    assert_true(signal_frame);
    assert_int_equal(regs.r[CS_IP], 0xFA170);
    assert_int_equal(regs.r[CS_FP], 0xF9);
    assert_int_equal(regs.r[CS_SP], at(100 + (i == 0 ? 144 : 152) / 8));
    assert_int_equal(regs.known, CS_REG_BIT(CS_IP) | CS_REG_BIT(CS_SP) | CS_REG_BIT(CS_FP));
  }
}

// Ordinary functions may save lr far below their CFA, and call.
static void leaves_other_frames_alone(void **state) {
  (void)state;
  text[WRAPPER - 1] = 12;  // not the offset of the return address
  assert_int_equal(apply(), CS_QUIRKS - 1);
  regs.r[CS_SP] = regs.r[CS_FP] = at(100);
  words[101] = 0xCA11;
  assert_int_equal(step(WRAPPER + 4, false), CS_STOP_NONE);
  assert_false(signal_frame);
  assert_int_equal(regs.known, CS_REGS_PRESERVED);
}

// At every instruction but the first the registers are those of the CONTEXT; as soon as they have
// been loaded, and the memory may have gone, those that have been loaded.
static void goes_where_a_context_is_restored(void **state) {
  (void)state;
  for (unsigned i = 1; i <= 9; i++) {
    (void)setup(NULL);
    assert_int_equal(apply(), CS_QUIRKS);
    bool moved = i == 3 || i == 4, loaded = i >= 8;
    regs.r[CS_SP] = at(50);
    words[100] = 1;  // ContextFlags: there are control registers
    for (unsigned r = 0; r < 33; r++) words[101 + r] = 0xC000 + r;
    words[101 + CS_SP] = at(200);
    regs.r[CS_X16] = at(100) + (moved ? 272 : 0);
    if (loaded) {
      for (unsigned r = CS_X19; r <= CS_LR; r++) regs.r[r] = 0xC000 + r;
      regs.r[CS_X16] = at(200);
      regs.r[CS_X17] = 0xC000 + 32;
      memset(&words[100], 0, 40 * sizeof words[0]);
    }
    if (i == 9) regs.r[CS_SP] = at(200);
    assert_int_equal(step(RESTORE + i, true), CS_STOP_NONE);
    assert_true(signal_frame);
    assert_int_equal(regs.r[CS_IP], 0xC000 + 32);
    assert_int_equal(regs.r[CS_SP], at(200));
    for (unsigned r = CS_X19; r <= CS_LR; r++) assert_int_equal(regs.r[r], 0xC000 + r);
    assert_int_equal(regs.known, CS_REGS_PRESERVED | CS_REG_BIT(CS_LR));
  }
}

// The frame is at words[100]: fp, lr and x19, and 4 words below them while sp is lowest.
static void finds_the_caller_in_epilogs(void **state) {
  (void)state;
  static const uint8_t sp_is[MACRO_END] = {106, 100, 100, 100, 96,  96,  96, 100,
                                           100, 106, 96,  96,  100, 100, 106};
  for (unsigned i = 0; i < MACRO_END; i++) {
    (void)setup(NULL);
    assert_int_equal(apply(), CS_QUIRKS);
    bool leaf = i == 0 || i == MACRO_RET || i == MACRO_BR;
    words[100] = 0xF9;
    words[101] = 0xCA11;
    words[102] = 0xB19;
    regs.r[CS_SP] = at(sp_is[i]);
    regs.r[CS_FP] = leaf || i == 1 ? 0xF9 : at(100);
    if (leaf || i <= MACRO_CALLED - 1) regs.r[CS_LR] = 0xCA11;
    if (leaf || i <= 4) regs.r[CS_X19] = 0xB19;
    assert_int_equal(step(MACRO + i, true), CS_STOP_NONE);
    assert_false(signal_frame);
    assert_int_equal(regs.r[CS_IP], 0xCA11);
    assert_int_equal(regs.r[CS_SP], at(106));
    assert_int_equal(regs.r[CS_FP], 0xF9);
    assert_int_equal(regs.r[CS_X19], 0xB19);
  }
}

// A frame that is left in a way that is not known: no rule is better than a wrong one.
static void distrusts_what_it_cannot_correct(void **state) {
  (void)state;
  text[MACRO + 8] = text[MACRO + 13] = NOP;  // instead of ldp fp, lr, [sp], 48
  assert_int_equal(apply(), CS_QUIRKS);
  regs.r[CS_SP] = at(96);
  regs.r[CS_FP] = at(100);
  assert_int_equal(step(MACRO + 4, true), CS_STOP_NONE);
  assert_int_equal(step(MACRO + MACRO_RET, true), CS_STOP_NATIVE_RULE);
  assert_int_equal(step(MACRO + MACRO_BR, true), CS_STOP_NATIVE_RULE);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(leads_out_of_a_fault),
      TEST(leaves_other_frames_alone),
      TEST(goes_where_a_context_is_restored),
      TEST(finds_the_caller_in_epilogs),
      TEST(distrusts_what_it_cannot_correct),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
