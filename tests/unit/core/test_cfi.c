// SPDX-License-Identifier: MIT
// .eh_frame written by hand: each operation, pointer encoding and augmentation, and then what must
// be refused: truncated, contradictory and mutated sections.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

#include "base/regs.h"
#include "native/cfi.h"
#include "native/elf.h"

#define TEXT 0x400000u
#define SECTION 0x500000u  // address of the section
enum { TEXT_BYTES = 0x10000, CAPACITY = 4096 };

static struct cs_rules rules;
static struct cs_rows rows;
static struct cs_cfi_stats stats;
static struct cs_error err;

struct builder {
  uint8_t bytes[CAPACITY];
  uint32_t size, cie;
};
static struct builder b;

static void put(const void *bytes, size_t len) {
  assert_true(b.size + len <= CAPACITY);
  memcpy(b.bytes + b.size, bytes, len);
  b.size += (uint32_t)len;
}
static void put_u8(unsigned v) {
  uint8_t byte = (uint8_t)v;
  put(&byte, 1);
}
static void put_u32(uint32_t v) {
  put(&v, 4);
}
static void put_u64(uint64_t v) {
  put(&v, 8);
}
static void patch_length(uint32_t at) {
  while (b.size % 4 != 0) put_u8(0);
  uint32_t len = b.size - at - 4;
  memcpy(b.bytes + at, &len, 4);
}

// A string literal with its length: OPS("\x0e\x10").
#define OPS(s) (s), (sizeof(s) - 1)

// version 1, code alignment 1, data alignment -8, return address 16, then the augmentation's data.
static void add_cie(const char *augmentation, const char *data, size_t data_len) {
  static const char def_cfa[] = "\x0c\x07\x08\x90\x01";  // def_cfa rsp + 8; rip at cfa - 8
  b.cie = b.size;
  put_u32(0);
  put_u32(0);
  put_u8(1);
  put(augmentation, strlen(augmentation) + 1);
  put("\x01\x78\x10", 3);
  if (augmentation[0] == 'z') put_u8((unsigned)data_len);
  put(data, data_len);
  put(def_cfa, sizeof def_cfa - 1);
  patch_length(b.cie);
}
static void add_fde_head(uint32_t *at) {
  *at = b.size;
  put_u32(0);
  put_u32(b.size - b.cie);
}
// Adds an FDE of a CIE with "zR" and pcrel | sdata4.
static void add_fde(uint32_t ip, uint32_t len, const char *ops, size_t ops_len) {
  uint32_t at;
  add_fde_head(&at);
  put_u32((uint32_t)(TEXT + ip - (SECTION + b.size)));
  put_u32(len);
  put_u8(0);
  put(ops, ops_len);
  patch_length(at);
}

static void start(void) {
  memset(&b, 0, sizeof b);
  rows.count = 0;
  stats = (struct cs_cfi_stats){0};
  err.text[0] = '\0';
}
static void start_usual(void) {
  start();
  add_cie("zR", OPS("\x1b"));
}

static enum cs_cfi_result compile_counted(uint32_t fdes) {
  struct cs_cfi_section section = {.bytes = b.bytes,
                                   .size = b.size,
                                   .address = SECTION,
                                   .data_base = SECTION,
                                   .fde_count = fdes};
  rows.count = 0;
  return cs_cfi_compile(&section, TEXT, TEXT + TEXT_BYTES, &rules, &rows, &stats, &err);
}
static enum cs_cfi_result compile(void) {
  return compile_counted(0);
}

// Returns the rule at a place; NULL in a gap.
static const struct cs_cfi_rule *rule_at(uint32_t ip) {
  uint16_t id = CS_NO_RULE;
  for (uint32_t i = 0; i < rows.count && rows.ip[i] <= ip; i++) id = rows.rule[i];
  return id == CS_NO_RULE ? NULL : &rules.rule[id];
}
static void expect_cfa(uint32_t ip, unsigned how, unsigned reg, int32_t off) {
  const struct cs_cfi_rule *rule = rule_at(ip);
  assert_non_null(rule);
  assert_int_equal(rule->cfa_how, how);
  if (how == CS_CFA_NONE) return;
  assert_int_equal(rule->cfa_reg, reg);
  assert_int_equal(rule->cfa_off, off);
}
static void expect_slot(uint32_t ip, unsigned slot, unsigned how, int32_t off) {
  const struct cs_cfi_rule *rule = rule_at(ip);
  assert_non_null(rule);
  assert_int_equal(rule->slot[slot].how, how);
  assert_int_equal(rule->slot[slot].off, off);
}
// Makes a section with one function [0x100, 0x140) that has these operations.
static void one(const char *ops, size_t len) {
  start_usual();
  add_fde(0x100, 0x40, ops, len);
  put_u32(0);
  assert_int_equal(compile(), CS_CFI_OK);
  assert_int_equal(stats.fdes, 1);
}

static void rows_hold_where_they_say(void **state) {
  (void)state;
  one(OPS("\x44\x0e\x10\x02\x04\x0e\x20\x03\x08\x00\x0e\x30\x04\x10\x00\x00\x00\x0e\x08"));
  assert_null(rule_at(0xFF));
  expect_cfa(0x100, CS_CFA_REG, CS_RSP, 8);
  expect_cfa(0x103, CS_CFA_REG, CS_RSP, 8);
  expect_cfa(0x104, CS_CFA_REG, CS_RSP, 16);  // advance_loc
  expect_cfa(0x108, CS_CFA_REG, CS_RSP, 32);  // advance_loc1
  expect_cfa(0x10F, CS_CFA_REG, CS_RSP, 32);
  expect_cfa(0x110, CS_CFA_REG, CS_RSP, 48);  // advance_loc2
  expect_cfa(0x120, CS_CFA_REG, CS_RSP, 8);   // advance_loc4
  expect_cfa(0x13F, CS_CFA_REG, CS_RSP, 8);
  assert_null(rule_at(0x140));
  assert_int_equal(rows.count, 7);
}

static void rows_end_with_the_function(void **state) {
  (void)state;
  one(OPS("\x04\xFF\xFF\xFF\x7F\x0e\x10"));  // advances far beyond the end
  expect_cfa(0x13F, CS_CFA_REG, CS_RSP, 8);
  assert_null(rule_at(0x140));
  one(OPS("\x1d\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x0e\x10"));  // and wraps around
  assert_null(rule_at(0x140));
}

static void equal_neighbours_are_one_row(void **state) {
  (void)state;
  one(OPS("\x41\x0e\x10\x41\x0e\x08\x41\x86\x02\x41\xc6"));
  assert_int_equal(rows.count, 1 + 5 + 1);
  one(OPS("\x41\x2e\x10\x41\x2e\x20\x41\x00\x41\x83\x02\x41\x83\x02"));  // GNU_args_size, nop
  assert_int_equal(rows.count, 1 + 2 + 1);
}

static void cfa_operations(void **state) {
  (void)state;
  one(OPS("\x0c\x06\x10"));
  expect_cfa(0x100, CS_CFA_REG, CS_RBP, 16);
  one(OPS("\x0d\x0a"));
  expect_cfa(0x100, CS_CFA_REG, CS_R10, 8);
  one(OPS("\x12\x00\x7e"));  // def_cfa_sf rax, -2 * -8
  expect_cfa(0x100, CS_CFA_REG, CS_RAX, 16);
  one(OPS("\x13\x7d"));  // def_cfa_offset_sf
  expect_cfa(0x100, CS_CFA_REG, CS_RSP, 24);
  one(OPS("\x0c\x11\x10"));  // of a register that is not a general one
  expect_cfa(0x100, CS_CFA_NONE, 0, 0);
  assert_int_equal(stats.unsupported_cfa, 1);
}

static void dwarf_register_numbers(void **state) {
  (void)state;
  static const uint8_t ours[] = {CS_RAX, CS_RDX, CS_RCX, CS_RBX, CS_RSI, CS_RDI, CS_RBP, CS_RSP,
                                 CS_R8,  CS_R9,  CS_R10, CS_R11, CS_R12, CS_R13, CS_R14, CS_R15};
  for (unsigned i = 0; i < CS_COUNT(ours); i++) {
    char ops[] = {0x0c, (char)i, 0x40};
    one(ops, sizeof ops);
    expect_cfa(0x100, CS_CFA_REG, ours[i], 0x40);
  }
}

static void register_operations(void **state) {
  (void)state;
  one(OPS("\x83\x02\x05\x0c\x03\x11\x0d\x04\x2f\x0e\x05"));
  expect_slot(0x100, CS_CFI_RBX, CS_CFI_AT_CFA, -16);
  expect_slot(0x100, CS_CFI_R12, CS_CFI_AT_CFA, -24);  // offset_extended
  expect_slot(0x100, CS_CFI_R13, CS_CFI_AT_CFA, -32);  // offset_extended_sf
  expect_slot(0x100, CS_CFI_R14, CS_CFI_AT_CFA, 40);   // GNU_negative_offset_extended
  expect_slot(0x100, CS_CFI_R15, CS_CFI_SAME, 0);
  expect_slot(0x100, CS_CFI_RA, CS_CFI_AT_CFA, -8);
  one(OPS("\x14\x03\x02\x15\x06\x02\x09\x0c\x02\x07\x0d"));
  expect_slot(0x100, CS_CFI_RBX, CS_CFI_IS_CFA, -16);  // val_offset
  expect_slot(0x100, CS_CFI_RBP, CS_CFI_IS_CFA, -16);  // val_offset_sf
  expect_slot(0x100, CS_CFI_R12, CS_CFI_IN_REG, CS_RCX);
  expect_slot(0x100, CS_CFI_R13, CS_CFI_UNDEFINED, 0);
  one(OPS("\x83\x02\x86\x03\x41\xc3\x41\x06\x06\x41\x83\x02\x08\x03"));
  expect_slot(0x101, CS_CFI_RBX, CS_CFI_SAME, 0);  // restore
  expect_slot(0x101, CS_CFI_RBP, CS_CFI_AT_CFA, -24);
  expect_slot(0x102, CS_CFI_RBP, CS_CFI_SAME, 0);  // restore_extended
  expect_slot(0x103, CS_CFI_RBX, CS_CFI_SAME, 0);  // same_value
  one(OPS("\x91\x02\x05\x20\x03\x80\x04"));        // xmm0, 32, rax: of no interest
  assert_int_equal(rows.count, 3);
  one(OPS("\x07\x10"));
  expect_slot(0x100, CS_CFI_RA, CS_CFI_UNDEFINED, 0);
}

static void states_nest(void **state) {
  (void)state;
  one(OPS("\x0a\x41\x0e\x10\x0a\x41\x0c\x06\x10\x41\x0b\x41\x0b"));
  expect_cfa(0x101, CS_CFA_REG, CS_RSP, 16);
  expect_cfa(0x102, CS_CFA_REG, CS_RBP, 16);
  expect_cfa(0x103, CS_CFA_REG, CS_RSP, 16);
  expect_cfa(0x104, CS_CFA_REG, CS_RSP, 8);
}

static void expressions_that_occur(void **state) {
  (void)state;
  one(OPS("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"));  // the PLT's
  expect_cfa(0x100, CS_CFA_PLT, CS_RSP, 11);
  one(OPS("\x0f\x05\x77\x28\x06\x23\x08"));  // [rsp + 40] + 8
  expect_cfa(0x100, CS_CFA_DEREF, CS_RSP, 40);
  assert_int_equal(rule_at(0x100)->cfa_add, 8);
  one(OPS("\x0f\x03\x76\x70\x06"));  // [rbp - 16]
  expect_cfa(0x100, CS_CFA_DEREF, CS_RBP, -16);
  one(OPS("\x0f\x04\x7a\x08\x23\x08"));  // r10 + 8 + 8
  expect_cfa(0x100, CS_CFA_REG, CS_R10, 16);
  one(OPS("\x10\x03\x02\x77\x08\x10\x06\x02\x76\x00"));
  expect_slot(0x100, CS_CFI_RBX, CS_CFI_AT_SP, 8);
  expect_slot(0x100, CS_CFI_RBP, CS_CFI_AT_FP, 0);
}

// OpenSSL's [rsp + 8 + r9 * 8] + 8, and glibc's setcontext, whose CFA is a ucontext.
static void rare_forms(void **state) {
  (void)state;
  one(OPS("\x0f\x0a\x77\x08\x79\x00\x38\x1e\x22\x06\x23\x08\x41\x0c\x07\x08"));
  expect_cfa(0x100, CS_CFA_INDEXED, CS_R9, 8);
  assert_int_equal(rule_at(0x100)->cfa_add, 8);
  expect_cfa(0x101, CS_CFA_REG, CS_RSP, 8);
  one(OPS("\x41\x0c\x01\x00\x11\x07\x6c\x11\x10\x6b"));  // rsp at 160, the ip at 168
  expect_cfa(0x100, CS_CFA_REG, CS_RSP, 8);
  expect_cfa(0x101, CS_CFA_UCONTEXT, CS_RDX, 0);
  one(OPS("\x41\x0c\x01\x00\x11\x07\x6d\x11\x10\x6b"));  // rsp at 152: no ucontext
  expect_cfa(0x101, CS_CFA_NONE, 0, 0);
}

static void what_a_rule_cannot_say_is_no_rule(void **state) {
  (void)state;
  one(OPS("\x0f\x0a\x77\x08\x79\x00\x34\x1e\x22\x06\x23\x08\x41\x0c\x07\x08"));  // r9 * 4
  expect_cfa(0x100, CS_CFA_NONE, 0, 0);
  expect_cfa(0x101, CS_CFA_REG, CS_RSP, 8);
  one(OPS("\x0f\x06\x77\x28\x06\x23\x80\x02\x41\x0c\x07\x08"));  // adds 256
  expect_cfa(0x100, CS_CFA_NONE, 0, 0);
  expect_cfa(0x101, CS_CFA_REG, CS_RSP, 8);
  one(OPS("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x34\x24\x22"));  // a PLT of 16-byte words
  expect_cfa(0x100, CS_CFA_NONE, 0, 0);
  one(OPS("\x09\x07\x08\x41\xc7"));  // the caller's rsp is in r8: longjmp
  expect_cfa(0x100, CS_CFA_NONE, 0, 0);
  expect_cfa(0x101, CS_CFA_REG, CS_RSP, 8);
  one(OPS("\x10\x10\x03\x77\x08\x06"));  // an odd return address is not undefined
  expect_cfa(0x100, CS_CFA_NONE, 0, 0);
  one(OPS("\x16\x03\x02\x77\x08"));  // an odd rbx loses only rbx
  expect_cfa(0x100, CS_CFA_REG, CS_RSP, 8);
  expect_slot(0x100, CS_CFI_RBX, CS_CFI_UNDEFINED, 0);
  assert_int_equal(stats.unsupported_register, 1);
  one(OPS("\x83\x02\x41\x1c\x41\x0e\x10"));  // an unknown operation: nothing after it is known
  expect_cfa(0x100, CS_CFA_REG, CS_RSP, 8);
  expect_cfa(0x101, CS_CFA_NONE, 0, 0);
  expect_cfa(0x13F, CS_CFA_NONE, 0, 0);
  one(OPS("\x0e\x80\x80\x80\x80\x10\x41\x0e\x10"));  // a frame of 4 GiB
  expect_cfa(0x100, CS_CFA_NONE, 0, 0);
}

static void epilogues_that_lie_are_not_believed(void **state) {
  (void)state;
  one(OPS("\x41\x0e\x20\x48\x0e\x10\x41\x0e\x08\x48\x13\x0a"));  // ... and a CFA of rsp - 80
  expect_cfa(0x100, CS_CFA_REG, CS_RSP, 8);
  expect_cfa(0x108, CS_CFA_REG, CS_RSP, 32);
  expect_cfa(0x109, CS_CFA_NONE, 0, 0);
  expect_cfa(0x13F, CS_CFA_NONE, 0, 0);
  assert_int_equal(stats.distrusted, 1);
}

// The last row holds a single instruction, a return: there the CFA must be rsp + 8.
static void returns_tell_the_truth(void **state) {
  (void)state;
  static const struct {
    const char *code;
    unsigned height;     // in the last row
    unsigned none_from;  // where the rules end; 8: nowhere
  } cases[] = {
      {"\x50\x90\x90\x90\x90\x90\x58\xc3", 8, 8},
      {"\x50\x90\x90\x90\x90\x90\x58\xc3", 24, 4},  // an adjustment was forgotten
      {"\x50\x90\x90\x90\x90\x90\x58\xc3", 16, 0},  // it was not called
      {"\x50\x90\x90\x90\x90\x90\x58\x90", 24, 8},  // no return
  };
  struct cs_process_memory self;
  cs_process_memory_init(&self, 0);
  for (unsigned i = 0; i < CS_COUNT(cases); i++) {
    uint32_t at;
    uint64_t text = (uint64_t)(uintptr_t)cases[i].code;
    start();
    add_cie("zR", OPS("\x00"));
    add_fde_head(&at);
    put_u64(text);
    put_u64(8);
    put("\x00\x0e\x30\x44\x0e\x20\x43\x0e", 8);  // height 48; 32 from 4 on; at 7:
    put_u8(cases[i].height);
    patch_length(at);
    put_u32(0);
    struct cs_cfi_section section = {
        .bytes = b.bytes, .size = b.size, .address = SECTION, .process = &self};
    assert_int_equal(cs_cfi_compile(&section, text, text + 64, &rules, &rows, &stats, &err),
                     CS_CFI_OK);
    for (uint32_t ip = 0; ip < 8; ip++)
      assert_int_equal(rule_at(ip)->cfa_how == CS_CFA_NONE, ip >= cases[i].none_from);
    assert_null(rule_at(8));
  }
}

static void signal_frames(void **state) {
  (void)state;
  static const char kernel[] =
      "\x0f\x04\x77\xa0\x01\x06\x10\x10\x03\x77\xa8\x01\x10\x07\x03\x77\xa0\x01";
  start();
  add_cie("zRS", OPS("\x1b"));
  add_fde(0x100, 0x40, kernel, sizeof kernel - 1);
  add_fde(0x200, 0x40, OPS("\x0e\x10"));  // marked, but not what the kernel makes
  put_u32(0);
  assert_int_equal(compile(), CS_CFI_OK);
  assert_int_equal(rule_at(0x100)->signal_frame, 1);
  expect_cfa(0x200, CS_CFA_NONE, 0, 0);
}

static void encodings(void **state) {
  (void)state;
  static const struct {
    uint8_t encoding;
    unsigned bytes;
    uint64_t base;
  } cases[] = {{0x00, 8, 0},       {0x04, 8, 0},       {0x0c, 8, 0}, {0x03, 4, 0},
               {0x3b, 4, SECTION}, {0x3c, 8, SECTION}, {0x01, 0, 0}, {0x09, 0, 0}};
  for (unsigned i = 0; i < CS_COUNT(cases); i++) {
    uint32_t at;
    char data[] = {(char)cases[i].encoding};
    uint64_t value = TEXT + 0x100 - cases[i].base, len = 0x40;
    start();
    add_cie("zR", data, 1);
    add_fde_head(&at);
    if (cases[i].bytes != 0) {
      put(&value, cases[i].bytes);
      put(&len, cases[i].bytes);
    } else {  // LEB128 of 0x400100 and 0x40, good for both kinds
      put("\x80\x82\x80\x02\xc0\x00", 6);
    }
    put_u8(0);
    put("\x0e\x18", 2);
    patch_length(at);
    put_u32(0);
    assert_int_equal(compile(), CS_CFI_OK);
    expect_cfa(0x100, CS_CFA_REG, CS_RSP, 24);
    assert_null(rule_at(0x140));
  }
}

static void augmentations(void **state) {
  (void)state;
  start();
  add_cie("zPLR", OPS("\x9b\x01\x02\x03\x04\x1b\x1b"));  // a personality, and an LSDA in the FDE
  uint32_t at;
  add_fde_head(&at);
  put_u32((uint32_t)(TEXT + 0x100 - (SECTION + b.size)));
  put_u32(0x40);
  put("\x04\x01\x02\x03\x04\x0e\x18", 7);
  patch_length(at);
  add_cie("zQR", OPS("\x01\x1b"));  // unknown: its functions are left out, all others stay
  add_fde(0x200, 0x40, OPS("\x0e\x10"));
  add_cie("", OPS(""));  // no augmentation: absolute pointers
  add_fde_head(&at);
  put_u64(TEXT + 0x300);
  put_u64(0x40);
  put("\x0e\x20", 2);
  patch_length(at);
  put_u32(0);
  assert_int_equal(compile(), CS_CFI_OK);
  expect_cfa(0x100, CS_CFA_REG, CS_RSP, 24);
  assert_null(rule_at(0x200));
  expect_cfa(0x300, CS_CFA_REG, CS_RSP, 32);
  assert_int_equal(stats.skipped, 1);
  assert_int_equal(stats.fdes, 2);
}

static void versions(void **state) {
  (void)state;
  for (unsigned version = 1; version <= 5; version++) {
    start();
    b.cie = 0;
    put_u32(0);
    put_u32(0);
    put_u8(version);
    put("zR", 3);
    if (version == 4) put("\x08\x00", 2);
    put("\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01", 10);
    patch_length(0);
    add_fde(0x100, 0x40, OPS("\x0e\x10"));
    put_u32(0);
    assert_int_equal(compile(), CS_CFI_OK);
    assert_int_equal(stats.fdes, version == 1 || version == 3 || version == 4);
  }
}

static void functions_in_any_order_and_overlapping(void **state) {
  (void)state;
  start_usual();
  add_fde(0x300, 0x40, OPS("\x0e\x30"));
  add_fde(0x100, 0x80, OPS("\x0e\x10\x60\x0e\x18\x60\x0e\x1c"));
  add_fde(0x130, 0x10, OPS("\x0e\x20"));
  add_fde(0x500, 0, OPS("\x0e\x28"));                   // dropped by the linker
  add_fde(0xFFF0, 0x100, OPS("\x0e\x38"));              // reaches beyond the text
  add_fde((uint32_t)0 - TEXT, 0x100, OPS("\x0e\x40"));  // at address 0
  put_u32(0);
  assert_int_equal(compile(), CS_CFI_OK);
  assert_int_equal(stats.fdes, 4);
  expect_cfa(0x12F, CS_CFA_REG, CS_RSP, 24);
  expect_cfa(0x130, CS_CFA_REG, CS_RSP, 32);
  assert_null(rule_at(0x140));
  expect_cfa(0x300, CS_CFA_REG, CS_RSP, 48);
  assert_null(rule_at(0x500));
  expect_cfa(0xFFFF, CS_CFA_REG, CS_RSP, 56);
  for (uint32_t i = 1; i < rows.count; i++) assert_true(rows.ip[i] > rows.ip[i - 1]);
}

static void malformed_sections_are_refused(void **state) {
  (void)state;
  start_usual();
  add_fde(0x100, 0x40, OPS("\x0b"));  // restore_state of nothing
  put_u32(0);
  assert_int_equal(compile(), CS_CFI_MALFORMED);
  assert_string_not_equal(err.text, "");
  start_usual();
  add_fde(0x100, 0x40, OPS("\x00\x00\x0f\x7F"));  // an expression longer than the program
  put_u32(0);
  assert_int_equal(compile(), CS_CFI_MALFORMED);
  start_usual();
  b.cie += 4;  // no CIE is there
  add_fde(0x100, 0x40, OPS("\x0e\x10"));
  assert_int_equal(compile(), CS_CFI_MALFORMED);
  start_usual();
  put_u32(0x7FFFFFF0);  // a record longer than the section
  assert_int_equal(compile(), CS_CFI_MALFORMED);
  start_usual();
  char deep[200];
  memset(deep, 0x0a, sizeof deep);
  add_fde(0x100, 0x40, deep, sizeof deep);  // remembers states without an end
  assert_int_equal(compile(), CS_CFI_MALFORMED);
}

// Without the closing zero, the last function is followed by something else.
static void a_section_may_lack_its_end(void **state) {
  (void)state;
  start_usual();
  add_fde(0x100, 0x40, OPS("\x0e\x10"));
  assert_int_equal(compile(), CS_CFI_OK);
  put_u32(0x12345678);
  put_u32(0x9abcdef0);
  assert_int_equal(compile_counted(1), CS_CFI_OK);
  assert_int_equal(compile_counted(2), CS_CFI_MALFORMED);
}

static void rules_run_out_without_harm(void **state) {
  (void)state;
  struct cs_rules full;
  assert_true(cs_rules_init(&full));
  struct cs_cfi_rule rule = {.cfa_how = CS_CFA_REG, .cfa_reg = CS_RSP};
  assert_int_equal(cs_rules_intern(&full, &(struct cs_cfi_rule){0}), CS_RULE_NONE);
  for (int32_t i = 1; i < CS_RULES_MAX; i++) {
    rule.cfa_off = i * 8;
    assert_int_equal(cs_rules_intern(&full, &rule), i);
  }
  assert_int_equal(cs_rules_intern(&full, &rule), CS_RULES_MAX - 1);  // known: the same index
  rule.cfa_off = 4;
  assert_int_equal(cs_rules_intern(&full, &rule), CS_RULE_NONE);
  assert_int_equal(full.refused, 1);
  cs_rules_free(&full);
}

static uint64_t seed = 0x243F6A8885A308D3u;  // fixed, so that a failure can be repeated
static uint32_t random_below(uint32_t n) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (uint32_t)(seed >> 32) % n;
}

static void rows_are_sound(uint64_t text_bytes) {
  for (uint32_t i = 0; i < rows.count; i++) {
    assert_true(rows.ip[i] <= text_bytes);
    assert_true(rows.rule[i] == CS_NO_RULE || rows.rule[i] < rules.count);
    if (i != 0) assert_true(rows.ip[i] > rows.ip[i - 1] && rows.rule[i] != rows.rule[i - 1]);
  }
}

// Any damage gives rows that are sound, or a refusal. (Under ASan, stray reads are seen, too: the
// section is a heap block of exactly its size.)
static void mutations(void **state) {
  (void)state;
  start_usual();
  add_fde(0x100, 0x40, OPS("\x0a\x41\x0e\x10\x0a\x41\x0c\x06\x10\x41\x0b\x41\x0b\x83\x02"));
  add_fde(0x200, 0x40, OPS("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22\x02\x04\x0e\x20"));
  add_cie("zPLR", OPS("\x9b\x01\x02\x03\x04\x1b\x1b"));
  add_fde(0x300, 0x400, OPS("\x04\x10\x00\x00\x00\x16\x03\x02\x77\x08\x2e\x10\x09\x0c\x02"));
  put_u32(0);
  struct builder whole = b;
  unsigned refused = 0;
  for (unsigned i = 0; i < 50000; i++) {
    size_t size = random_below(8) == 0 ? random_below(whole.size) : whole.size;
    uint8_t *bytes = malloc(size != 0 ? size : 1);
    assert_non_null(bytes);
    memcpy(bytes, whole.bytes, size);
    for (unsigned n = random_below(4); n != 0 && size != 0; n--)
      bytes[random_below((uint32_t)size)] = (uint8_t)random_below(256);
    struct cs_cfi_section section = {.bytes = bytes, .size = size, .address = SECTION};
    rows.count = 0;
    enum cs_cfi_result result =
        cs_cfi_compile(&section, TEXT, TEXT + TEXT_BYTES, &rules, &rows, &stats, &err);
    assert_true(result == CS_CFI_OK || result == CS_CFI_MALFORMED);
    rows_are_sound(TEXT_BYTES);
    refused += result == CS_CFI_MALFORMED;
    free(bytes);
  }
  assert_true(refused > 100 && refused < 49000);
}

// The vdso is a whole image of two pages. A damaged copy of it goes through the ELF reader.
static void mutated_images(void **state) {
  (void)state;
  enum { BYTES = 2 * CS_ELF_PAGE };
  uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
  if (vdso == 0) skip();
  struct cs_process_memory self;
  struct cs_elf elf;
  uint8_t *image = malloc(BYTES);
  assert_non_null(image);
  cs_process_memory_init(&self, 0);
  uint64_t at = (uint64_t)(uintptr_t)image;
  struct cs_candidate candidate = {.begin = at, .end = at + BYTES, .base = at, .path = "copy"};
  unsigned good = 0;
  for (unsigned i = 0; i < 5000; i++) {
    memcpy(image, (const void *)(uintptr_t)vdso, BYTES);
    for (unsigned n = i == 0 ? 0 : 1 + random_below(3); n != 0; n--)  // in the headers, mostly
      image[random_below(random_below(4) == 0 ? BYTES : 64 + 4 * 56)] = (uint8_t)random_below(256);
    if (cs_elf_open(&self, &candidate, &elf) != CS_ELF_OK) continue;
    enum cs_elf_result result = cs_elf_read(&self, &candidate, &elf, &err);
    if (i == 0) assert_int_equal(result, CS_ELF_OK);
    if (result != CS_ELF_OK || elf.eh_frame_end == 0) continue;
    assert_true(elf.eh_frame < elf.eh_frame_end);
    uint64_t len = elf.eh_frame_end - elf.eh_frame;
    if (len > BYTES || elf.eh_frame < at || elf.eh_frame_end > at + BYTES) continue;
    struct cs_cfi_section section = {(const uint8_t *)(uintptr_t)elf.eh_frame,
                                     (size_t)len,
                                     elf.eh_frame,
                                     elf.hdr,
                                     elf.fde_count,
                                     &self};
    rows.count = 0;
    if (cs_cfi_compile(&section, at, at + BYTES, &rules, &rows, &stats, &err) == CS_CFI_OK) good++;
    rows_are_sound(BYTES);
  }
  assert_true(good > 0);
  free(image);
}

static int setup(void **state) {
  (void)state;
  return cs_rules_init(&rules) ? 0 : -1;
}
static int teardown(void **state) {
  (void)state;
  cs_rules_free(&rules);
  cs_rows_free(&rows);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_hold_where_they_say),
      cmocka_unit_test(rows_end_with_the_function),
      cmocka_unit_test(equal_neighbours_are_one_row),
      cmocka_unit_test(cfa_operations),
      cmocka_unit_test(dwarf_register_numbers),
      cmocka_unit_test(register_operations),
      cmocka_unit_test(states_nest),
      cmocka_unit_test(expressions_that_occur),
      cmocka_unit_test(rare_forms),
      cmocka_unit_test(what_a_rule_cannot_say_is_no_rule),
      cmocka_unit_test(epilogues_that_lie_are_not_believed),
      cmocka_unit_test(returns_tell_the_truth),
      cmocka_unit_test(signal_frames),
      cmocka_unit_test(encodings),
      cmocka_unit_test(augmentations),
      cmocka_unit_test(versions),
      cmocka_unit_test(functions_in_any_order_and_overlapping),
      cmocka_unit_test(malformed_sections_are_refused),
      cmocka_unit_test(a_section_may_lack_its_end),
      cmocka_unit_test(rules_run_out_without_harm),
      cmocka_unit_test(mutations),
      cmocka_unit_test(mutated_images),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
