// SPDX-License-Identifier: MIT
// One native step over stacks and rows laid out by hand: each kind of rule, the kernel's signal
// frame with and without unwind data, and everything that must be refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include "images/images.h"
#include "unwind/unwind.h"

enum { WORDS = 512, CODE_BYTES = 4 * (1u << CS_BLOCK_BITS), RULES = 8, RULE = 1 };
static uint64_t words[WORDS];
static uint8_t code_bytes[CODE_BYTES];
static struct cs_cfi_rule rules[RULES];

static uint32_t row_ip[8];
static uint16_t row_rule[8];
static uint32_t block_row[CODE_BYTES >> CS_BLOCK_BITS];
static struct {
  struct cs_images head;
  struct cs_image image;
} table;

static struct cs_world world;
static struct cs_stack stack;
static struct cs_code code;
static struct cs_regs regs;
static bool signal_frame;

static uint64_t at(unsigned word) {
  return (uint64_t)(uintptr_t)&words[word];
}
static uint64_t ip_at(unsigned offset) {
  return (uint64_t)(uintptr_t)code_bytes + offset;
}

static void add_row(uint32_t ip, uint16_t rule) {
  row_ip[table.image.row_count] = ip;
  row_rule[table.image.row_count++] = rule;
  table.image.block_bits = CS_BLOCK_BITS;
  table.image.block_count = CODE_BYTES >> CS_BLOCK_BITS;
  for (uint32_t block = 0; block < table.image.block_count; block++)
    if (ip <= block << CS_BLOCK_BITS) block_row[block] = table.image.row_count - 1;
}

// Rule 1 (a usual one: a frame of 4 words, rbx and rbp saved) holds in [0x10, 0x80).
static int setup(void **state) {
  (void)state;
  memset(words, 0, sizeof words);
  memset(code_bytes, 0x90, sizeof code_bytes);
  memset(rules, 0, sizeof rules);
  memset(&table, 0, sizeof table);
  table.image = (struct cs_image){.begin = ip_at(0),
                                  .end = ip_at(CODE_BYTES),
                                  .path = "/made/up",
                                  .row_ip = row_ip,
                                  .row_rule = row_rule,
                                  .block_row = block_row};
  table.head.count = 1;
  table.head.rules = rules;
  struct cs_cfi_rule *rule = &rules[RULE];
  rule->cfa_how = CS_CFA_REG;
  rule->cfa_reg = CS_RSP;
  rule->cfa_off = 40;
  rule->slot[CS_CFI_RBX].how = rule->slot[CS_CFI_RBP].how = rule->slot[CS_CFI_RA].how =
      CS_CFI_AT_CFA;
  rule->slot[CS_CFI_RA].off = -8;
  rule->slot[CS_CFI_RBP].off = -16;
  rule->slot[CS_CFI_RBX].off = -24;
  add_row(0, CS_NO_RULE);
  add_row(0x10, RULE);
  add_row(0x80, CS_NO_RULE);
  cs_mem_init_self(&world.mem);
  world.images = &table.head;
  stack = (struct cs_stack){.lo = at(0), .hi = at(WORDS)};
  code = (struct cs_code){.kind = CS_CODE_NATIVE, .image = &table.image};
  regs.known = CS_REGS_ALL;
  for (unsigned i = 0; i < CS_REG_COUNT; i++) regs.r[i] = 0x1000 + i;
  regs.r[CS_RSP] = at(100);
  regs.r[CS_RIP] = ip_at(0x20);
  words[104] = 0xCA11;  // the return address
  words[103] = 0xB9;
  words[102] = 0xB8;
  return 0;
}

static enum cs_stop step(bool exact) {
  return cs_unwind_native(&world, &code, &stack, exact, &regs, &signal_frame);
}
static void refused(enum cs_stop stop) {
  struct cs_regs before = regs;
  assert_int_equal(step(true), stop);
  assert_memory_equal(&regs, &before, sizeof regs);
  assert_false(signal_frame);
}

static void usual_frame(void **state) {
  (void)state;
  assert_int_equal(step(true), CS_STOP_NONE);
  assert_int_equal(regs.r[CS_RIP], 0xCA11);
  assert_int_equal(regs.r[CS_RSP], at(105));
  assert_int_equal(regs.r[CS_RBP], 0xB9);
  assert_int_equal(regs.r[CS_RBX], 0xB8);
  assert_int_equal(regs.r[CS_R12], 0x1000 + CS_R12);
  assert_int_equal(regs.known, CS_REGS_PRESERVED);
  assert_false(signal_frame);
}

// A call may be the last instruction of its function, so that the return address is after the
// function's end.
static void return_addresses_count_for_the_call(void **state) {
  (void)state;
  regs.r[CS_RIP] = ip_at(0x80);
  refused(CS_STOP_NO_NATIVE_RULE);
  assert_int_equal(step(false), CS_STOP_NONE);
  (void)setup(NULL);
  regs.r[CS_RIP] = ip_at(0x10);
  assert_int_equal(step(false), CS_STOP_NO_NATIVE_RULE);
  assert_int_equal(step(true), CS_STOP_NONE);
}

static void every_kind_of_slot(void **state) {
  (void)state;
  struct cs_cfi_rule *rule = &rules[RULE];
  rule->slot[CS_CFI_RBX].how = CS_CFI_UNDEFINED;
  rule->slot[CS_CFI_RBP].how = CS_CFI_IS_CFA;
  rule->slot[CS_CFI_R12].how = CS_CFI_AT_SP;
  rule->slot[CS_CFI_R12].off = 8;
  rule->slot[CS_CFI_R13].how = CS_CFI_AT_FP;
  rule->slot[CS_CFI_R13].off = -8;
  rule->slot[CS_CFI_R14].how = CS_CFI_IN_REG;
  rule->slot[CS_CFI_R14].off = CS_R9;
  rule->slot[CS_CFI_RA].how = CS_CFI_IN_REG;
  rule->slot[CS_CFI_RA].off = CS_RDI;
  regs.r[CS_RBP] = at(200);
  words[101] = 0xB12;
  words[199] = 0xB13;
  assert_int_equal(step(true), CS_STOP_NONE);
  assert_int_equal(regs.r[CS_RBP], at(105) - 16);
  assert_int_equal(regs.r[CS_R12], 0xB12);
  assert_int_equal(regs.r[CS_R13], 0xB13);
  assert_int_equal(regs.r[CS_R14], 0x1000 + CS_R9);
  assert_int_equal(regs.r[CS_RIP], 0x1000 + CS_RDI);
  assert_int_equal(regs.known, CS_REGS_PRESERVED & ~CS_REG_BIT(CS_RBX));
}

static void every_kind_of_cfa(void **state) {
  (void)state;
  struct cs_cfi_rule *rule = &rules[RULE];
  rule->cfa_reg = CS_R10;
  regs.r[CS_R10] = at(100);
  assert_int_equal(step(true), CS_STOP_NONE);
  assert_int_equal(regs.r[CS_RSP], at(105));
  (void)setup(NULL);
  rule->cfa_how = CS_CFA_DEREF;
  rule->cfa_off = 16;
  rule->cfa_add = 8;
  words[102] = at(104);
  assert_int_equal(step(true), CS_STOP_NONE);
  assert_int_equal(regs.r[CS_RSP], at(105));
  for (unsigned in_entry = 0; in_entry < 16; in_entry++) {
    (void)setup(NULL);
    rule->cfa_how = CS_CFA_PLT;
    rule->cfa_off = 11;
    uint64_t entry = (ip_at(0x20) + 15) & ~15ull;
    regs.r[CS_RIP] = entry + in_entry;
    words[100] = 0xCA0;
    words[101] = 0xCA1;
    assert_int_equal(step(true), CS_STOP_NONE);
    assert_int_equal(regs.r[CS_RIP], in_entry < 11 ? 0xCA0 : 0xCA1);
    assert_int_equal(regs.r[CS_RSP], in_entry < 11 ? at(101) : at(102));
  }
}

// vfork: the return address is in a register, and the caller's sp is the current one.
static void a_return_address_in_a_register(void **state) {
  (void)state;
  struct cs_cfi_rule *rule = &rules[RULE];
  memset(rule->slot, 0, sizeof rule->slot);
  rule->cfa_off = 0;
  rule->slot[CS_CFI_RA].how = CS_CFI_IN_REG;
  rule->slot[CS_CFI_RA].off = CS_RDI;
  assert_int_equal(step(true), CS_STOP_NONE);
  assert_int_equal(regs.r[CS_RIP], 0x1000 + CS_RDI);
  assert_int_equal(regs.r[CS_RSP], at(100));
}

// longjmp: the registers are those of the place where execution continues: in a jmp_buf at rdi
// until rsp is set, and loaded afterwards.
static void goes_on_elsewhere(void **state) {
  (void)state;
  struct cs_cfi_rule *rule = &rules[RULE];
  for (unsigned arrived = 0; arrived < 2; arrived++) {
    (void)setup(NULL);
    rule->cfa_how = CS_CFA_JUMP;
    rule->cfa_reg = CS_R8;
    rule->cfa_add = CS_RDI;
    rule->cfa_off = 0;
    rule->slot[CS_CFI_RBX].off = 0;
    rule->slot[CS_CFI_RBP].how = rule->slot[CS_CFI_RA].how = CS_CFI_IN_REG;
    rule->slot[CS_CFI_RBP].off = CS_R9;
    rule->slot[CS_CFI_RA].off = CS_RDX;
    regs.r[CS_RDI] = at(90);
    regs.r[CS_R8] = at(300);
    if (arrived) regs.r[CS_RSP] = at(300);
    words[90] = 0xB0F;
    assert_int_equal(step(true), CS_STOP_NONE);
    assert_int_equal(regs.r[CS_RIP], 0x1000 + CS_RDX);
    assert_int_equal(regs.r[CS_RSP], at(300));
    assert_int_equal(regs.r[CS_RBP], 0x1000 + CS_R9);
    assert_int_equal(regs.r[CS_RBX], arrived ? 0x1000 + CS_RBX : 0xB0F);
    assert_int_equal(regs.known, CS_REGS_PRESERVED);
    assert_false(signal_frame);
  }
  (void)setup(NULL);
  rule->cfa_how = CS_CFA_JUMP;
  rule->cfa_reg = CS_R8;
  refused(CS_STOP_BAD_SP);  // r8 does not point into the stack
}

// Lays out the fields of libgcc's struct _Unwind_Context that matter, at words[n].
static void lay_context(unsigned n, uint64_t cfa, uint64_t ip) {
  words[n + 3] = at(60);  // where rbx and rbp are saved
  words[n + 6] = at(61);
  words[n + 16] = cfa - 8;
  words[n + 18] = cfa;
  words[n + 19] = ip;
  words[n + 24] = 0x4000000000000000;
}

static void goes_on_where_an_exception_is_caught(void **state) {
  (void)state;
  // The frame covers words[100] to words[175), and was called from 0xCA11.
  for (unsigned same = 0; same < 2; same++) {
    (void)setup(NULL);
    rules[RULE].cfa_how = CS_CFA_EH_RETURN;
    rules[RULE].cfa_off = 75 * 8;
    words[174] = 0xCA11;
    words[60] = 0xB8;
    words[61] = 0xB9;
    uint64_t caught = same ? at(175) : at(200);
    lay_context(103, at(175), 0xCA11);
    // r12 and r14 are saved beside each other, but r13 is not; they look like an ip and a CFA.
    words[135 + 12] = at(180);
    words[135 + 14] = at(181);
    lay_context(135, caught, 0xCA7C4);
    assert_int_equal(step(true), CS_STOP_NONE);
    assert_int_equal(regs.r[CS_RIP], 0xCA7C4);
    assert_int_equal(regs.r[CS_RSP], caught);
    assert_int_equal(regs.r[CS_RBX], 0xB8);
    assert_int_equal(regs.r[CS_RBP], 0xB9);
    assert_int_equal(regs.known & CS_REG_BIT(CS_R13), 0);
    assert_true(signal_frame);  // no call returns to that place
  }
  (void)setup(NULL);  // only one of the two: not set yet, or another libgcc
  rules[RULE].cfa_how = CS_CFA_EH_RETURN;
  rules[RULE].cfa_off = 75 * 8;
  words[174] = 0xCA11;
  lay_context(103, at(175), 0xCA11);
  refused(CS_STOP_NATIVE_RULE);
}

static void a_stack_pointer_that_cannot_be(void **state) {
  (void)state;
  static const int32_t offsets[] = {0, -8, 41, 1 << 20, INT32_MIN};
  for (unsigned i = 0; i < CS_COUNT(offsets); i++) {
    (void)setup(NULL);
    rules[RULE].cfa_off = offsets[i];
    refused(CS_STOP_BAD_SP);
  }
  (void)setup(NULL);
  regs.r[CS_RSP] = stack.hi - 16;  // the frame reaches beyond the stack's end
  refused(CS_STOP_BAD_SP);
  (void)setup(NULL);
  rules[RULE].cfa_how = CS_CFA_DEREF;
  rules[RULE].cfa_off = 1 << 20;  // the CFA's word is on no stack
  refused(CS_STOP_BAD_SP);
  (void)setup(NULL);
  rules[RULE].slot[CS_CFI_R15].how = CS_CFI_AT_CFA;  // a saved register is
  rules[RULE].slot[CS_CFI_R15].off = 1 << 20;
  refused(CS_STOP_BAD_SP);
}

static void unknown_registers_are_not_used(void **state) {
  (void)state;
  rules[RULE].cfa_reg = CS_RAX;
  regs.r[CS_RAX] = at(100);
  regs.known = CS_REGS_PRESERVED;
  refused(CS_STOP_NATIVE_RULE);
  (void)setup(NULL);
  regs.known = CS_REGS_PRESERVED;
  rules[RULE].slot[CS_CFI_RA].how = CS_CFI_IN_REG;
  rules[RULE].slot[CS_CFI_RA].off = CS_RDI;
  refused(CS_STOP_NATIVE_RULE);
  (void)setup(NULL);
  rules[RULE].cfa_how = CS_CFA_NONE;
  refused(CS_STOP_NATIVE_RULE);
  (void)setup(NULL);
  rules[RULE].slot[CS_CFI_RA].how = CS_CFI_SAME;  // no function returns to itself
  refused(CS_STOP_NATIVE_RULE);
}

static void bases(void **state) {
  (void)state;
  words[104] = 0;
  refused(CS_STOP_BASE);
  (void)setup(NULL);
  rules[RULE].slot[CS_CFI_RA].how = CS_CFI_UNDEFINED;
  refused(CS_STOP_BASE);
}

static void places_without_a_rule(void **state) {
  (void)state;
  regs.r[CS_RIP] = ip_at(0x200);
  refused(CS_STOP_NO_NATIVE_RULE);
  regs.r[CS_RIP] = ip_at(CODE_BYTES) + 5;
  refused(CS_STOP_NO_NATIVE_RULE);
  regs.r[CS_RIP] = ip_at(0) - 1;
  refused(CS_STOP_NO_NATIVE_RULE);
  table.image.row_count = 0;  // an image without unwind data
  table.image.block_count = 0;
  regs.r[CS_RIP] = ip_at(0x20);
  refused(CS_STOP_NO_NATIVE_RULE);
  code.image = NULL;
  refused(CS_STOP_UNKNOWN_CODE);
}

// Lays out a signal frame at words[100], on the alternate stack (the words below 200).
static void lay_signal_frame(void) {
  ucontext_t *uc = (ucontext_t *)(void *)&words[100];
  greg_t *g = uc->uc_mcontext.gregs;
  stack = (struct cs_stack){.lo = at(300), .hi = at(WORDS), .alt_lo = at(0), .alt_hi = at(200)};
  static const int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                              REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                              REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (unsigned i = 0; i < CS_REG_COUNT; i++) g[order[i]] = 0x5000 + (greg_t)i;
  g[REG_RSP] = (greg_t)at(400);
  regs.r[CS_RSP] = at(100);
  regs.known = CS_REGS_PRESERVED;
}
static void came_out_of_the_signal(void) {
  assert_true(signal_frame);
  assert_int_equal(regs.known, CS_REGS_ALL);
  for (unsigned i = 0; i < CS_REG_COUNT; i++)
    assert_int_equal(regs.r[i], i == CS_RSP ? at(400) : 0x5000 + i);
}

static void signal_frame_with_a_rule(void **state) {
  (void)state;
  rules[2] = (struct cs_cfi_rule){.cfa_how = CS_CFA_DEREF, .cfa_reg = CS_RSP, .signal_frame = 1};
  row_rule[1] = 2;
  static const struct {
    unsigned offset;
    bool exact;
  } places[] = {{0x20, true}, {0x20, false}, {0x10, false}};  // the last: its very first byte
  for (unsigned i = 0; i < CS_COUNT(places); i++) {
    lay_signal_frame();
    regs.r[CS_RIP] = ip_at(places[i].offset);
    assert_int_equal(step(places[i].exact), CS_STOP_NONE);
    came_out_of_the_signal();
  }
  lay_signal_frame();
  ((ucontext_t *)(void *)&words[100])->uc_mcontext.gregs[REG_RSP] = 0x42;
  regs.r[CS_RIP] = ip_at(0x20);
  refused(CS_STOP_BAD_SP);
  regs.r[CS_RSP] = at(190);  // part of it is outside the stack
  refused(CS_STOP_BAD_SP);
}

static void signal_frame_by_its_bytes(void **state) {
  (void)state;
  lay_signal_frame();
  memcpy(code_bytes + 0x200, "\x48\xC7\xC0\x0F\x00\x00\x00\x0F\x05", 9);
  regs.r[CS_RIP] = ip_at(0x200);
  assert_int_equal(step(false), CS_STOP_NONE);
  came_out_of_the_signal();
  lay_signal_frame();
  code_bytes[0x203] = 0x0E;  // another system call
  regs.r[CS_RIP] = ip_at(0x200);
  refused(CS_STOP_NO_NATIVE_RULE);
}

static void images_are_found_by_address(void **state) {
  (void)state;
  enum { IMAGES = 7 };
  struct cs_images *images = calloc(1, sizeof *images + IMAGES * sizeof(struct cs_image));
  assert_non_null(images);
  for (uint32_t n = 0; n <= IMAGES; n++) {
    images->count = n;
    for (uint32_t i = 0; i < n; i++) {
      images->image[i].begin = 0x1000 * (i + 1);
      images->image[i].end = 0x1000 * (i + 1) + 0x800;
    }
    for (uint64_t ip = 0; ip < 0xA000; ip += 0x100) {
      bool in = ip >= 0x1000 && ip < 0x1000 * (n + 1ull) && ip % 0x1000 < 0x800;
      assert_ptr_equal(cs_images_find(images, ip), in ? &images->image[ip / 0x1000 - 1] : NULL);
    }
  }
  free(images);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(usual_frame, setup),
      cmocka_unit_test_setup(return_addresses_count_for_the_call, setup),
      cmocka_unit_test_setup(every_kind_of_slot, setup),
      cmocka_unit_test_setup(every_kind_of_cfa, setup),
      cmocka_unit_test_setup(a_return_address_in_a_register, setup),
      cmocka_unit_test_setup(goes_on_elsewhere, setup),
      cmocka_unit_test_setup(goes_on_where_an_exception_is_caught, setup),
      cmocka_unit_test_setup(a_stack_pointer_that_cannot_be, setup),
      cmocka_unit_test_setup(unknown_registers_are_not_used, setup),
      cmocka_unit_test_setup(bases, setup),
      cmocka_unit_test_setup(places_without_a_rule, setup),
      cmocka_unit_test_setup(signal_frame_with_a_rule, setup),
      cmocka_unit_test_setup(signal_frame_by_its_bytes, setup),
      cmocka_unit_test(images_are_found_by_address),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
