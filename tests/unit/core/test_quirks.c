// SPDX-License-Identifier: MIT
// The corrected rows of the delay-load helpers, compared with an execution of their two epilogs:
// the rule at each instruction must find the registers with which the helper leaves.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/regs.h"
#include "native/quirks.h"

#define FREE "\x48\x8D\xA4\x24\x88\x00\x00\x00"                // lea rsp, [rsp+88h]
#define POPS "\x41\x5C\x41\x5D\x41\x5E\x41\x5F\x5B\x5D"        // pop r12, r13, r14, r15, rbx, rbp
#define ARGUMENTS "\x5F\x5E\x5A\x59\x41\x58\x41\x59"           // pop rdi, rsi, rdx, rcx, r8, r9
#define FLOATS "\x66\x0F\x6F\x04\x24\x66\x0F\x6F\x4C\x24\x10"  // movdqa xmm0, [rsp]; and one more
#define TAIL FLOATS FREE ARGUMENTS POPS "\x48\xFF\xE0"         // jmp rax

enum { AT = 32, ROOM = 512, WORDS = 30, BASE = 0x10000 };

static struct cs_rules rules;
static uint8_t text[ROOM];
static uint64_t stack[WORDS];  // at the first lea, rsp is BASE, and the frame has 240 bytes

struct state {
  uint64_t r[CS_REG_COUNT];
  unsigned at;  // in `text`
  bool left;
};

static uint64_t word(uint64_t address) {
  assert_true(address >= BASE && address < BASE + 8 * WORDS && address % 8 == 0);
  return stack[(address - BASE) / 8];
}

static void pop(struct state *s, enum cs_reg reg) {
  uint64_t value = word(s->r[CS_RSP]);
  s->r[CS_RSP] += 8;
  s->r[reg] = value;
}

static void execute_one(struct state *s) {
  static const enum cs_reg low[] = {CS_RAX, CS_RCX, CS_RDX, CS_RBX, CS_RSP, CS_RBP, CS_RSI, CS_RDI},
                           high[] = {CS_R8, CS_R9, CS_R10, CS_R11, CS_R12, CS_R13, CS_R14, CS_R15};
  const uint8_t *code = text + s->at;
  if (memcmp(code, FREE, 8) == 0) {
    s->r[CS_RSP] += 0x88;
    s->at += 8;
  } else if (memcmp(code, "\x48\x83\xC4", 3) == 0) {
    s->r[CS_RSP] += code[3];
    s->at += 4;
  } else if (code[0] == 0x66) {
    s->at += code[3] == 0x04 ? 5 : 6;
  } else if (code[0] == 0x41) {
    pop(s, high[code[1] & 7]);
    s->at += 2;
  } else if (code[0] >= 0x58 && code[0] < 0x60) {
    pop(s, low[code[0] & 7]);
    s->at += 1;
  } else {
    assert_true(code[0] == 0xC3 || memcmp(code, "\x48\xFF\xE0", 3) == 0);
    s->left = true;  // the return address is the next word, for a jump, too
    pop(s, CS_RIP);
  }
}

static struct state by_rule(const struct cs_rows *rows, const struct state *s) {
  struct state caller = *s;
  uint32_t row = rows->count;
  while (row > 0 && rows->ip[row - 1] > s->at) row--;
  assert_true(row > 0);
  const struct cs_cfi_rule *rule = &rules.rule[rows->rule[row - 1]];
  assert_int_equal(rule->cfa_how, CS_CFA_REG);
  assert_int_equal(rule->cfa_reg, CS_RSP);
  uint64_t cfa = s->r[CS_RSP] + (uint64_t)rule->cfa_off;
  for (unsigned i = 0; i < CS_CFI_SLOTS; i++) {
    if (rule->slot[i].how == CS_CFI_SAME) continue;
    assert_int_equal(rule->slot[i].how, CS_CFI_AT_CFA);
    caller.r[cs_slot_register[i]] = word(cfa + (uint64_t)(int64_t)rule->slot[i].off);
  }
  caller.r[CS_RSP] = cfa;
  return caller;
}

// Compares from `begin` to the exit.
static unsigned compare(const struct cs_rows *rows, unsigned begin) {
  static const enum cs_reg compared[] = {CS_RIP, CS_RSP, CS_RBP, CS_RBX,
                                         CS_R12, CS_R13, CS_R14, CS_R15};
  unsigned places = 0;
  struct state s = {.r = {[CS_RSP] = BASE}, .at = begin};
  for (; !s.left; places++) {
    struct state end = s, caller = by_rule(rows, &s);
    while (!end.left) execute_one(&end);
    for (unsigned i = 0; i < CS_COUNT(compared); i++)
      if (caller.r[compared[i]] != end.r[compared[i]])
        fail_msg("at %u: register %d", s.at, (int)compared[i]);
    execute_one(&s);
  }
  return places;
}

static unsigned compare_helper(const char *first, unsigned first_size, unsigned *found) {
  static const char tail[] = TAIL;
  struct cs_rows rows = {.ip = NULL};
  unsigned corrected;
  struct cs_quirk_range quirks[CS_QUIRK_MAX];
  memset(text, 0x90, sizeof text);
  memcpy(text + AT, first, first_size);
  memcpy(text + AT + first_size, tail, sizeof tail - 1);
  *found = cs_quirks_find(text, sizeof text, quirks);
  assert_true(cs_quirks_apply(text, sizeof text, &rules, &rows, &corrected));
  unsigned places = 0;
  if (*found != 0) {
    assert_string_equal(quirks[0].name, "delay-load helper");
    assert_int_equal(quirks[0].begin, AT);
    assert_int_equal(quirks[0].end, AT + first_size + sizeof tail - 1);
    places = compare(&rows, AT) + compare(&rows, AT + first_size);
  }
  cs_rows_free(&rows);
  return places;
}

#define BYTES(text) text, sizeof text - 1

static void both_epilogs_of_a_delay_load_helper_are_right(void **state) {
  (void)state;
  unsigned found;
  for (unsigned i = 0; i < WORDS; i++) stack[i] = 0x1000 + i;
  assert_true(cs_rules_init(&rules));
  assert_int_equal(compare_helper(BYTES(FREE "\x48\x83\xC4\x30" POPS "\xC3"), &found), 9 + 16);
  assert_int_equal(found, 1);
  assert_int_equal(compare_helper(BYTES(FREE ARGUMENTS POPS "\xC3"), &found), 14 + 16);
  assert_int_equal(found, 1);
  // Another frame, and one that does not return first: not this shape.
  assert_int_equal(compare_helper(BYTES(FREE "\x48\x83\xC4\x38" POPS "\xC3"), &found), 0);
  assert_int_equal(found, 0);
  assert_int_equal(compare_helper(BYTES(FREE ARGUMENTS POPS "\x90"), &found), 0);
  assert_int_equal(found, 0);
  cs_rules_free(&rules);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_epilogs_of_a_delay_load_helper_are_right),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
