// SPDX-License-Identifier: MIT
// Managed unwinding, checked at every instruction: a small machine executes a method's prolog, body
// and epilog on a stack of its own, and after each instruction the unwinder must find the caller's
// registers as they were at the call.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/fake_clr.h"
#include "unwind/sites.h"

enum effect { NOTHING, PUSH, POP, ADD_RSP, LEA_FRAME, LEA_RSP, STORE, LOAD, LEAVE };

struct insn {  // an instruction's bytes, and what it does to the machine
  const char *bytes;
  unsigned size;
  enum effect effect;
  unsigned reg;    // pushed, popped, stored, loaded; frame register
  int64_t amount;  // added to rsp; displacement
};

struct method {
  const char *name;
  const struct insn *insns;
  unsigned count;
  const uint8_t *unwind;
  unsigned unwind_size;
  unsigned body;  // an instruction of its body
};

enum { WORDS = 4096, RETURN_IP = 0x123456789 };
static uint64_t stack_words[WORDS];

static uint64_t *word_at(uint64_t address) {
  return (uint64_t *)(uintptr_t)address;
}

static void run_one(struct cs_regs *m, const struct insn *in) {
  switch (in->effect) {
    case NOTHING:
      break;
    case PUSH:
      m->r[CS_RSP] -= 8;
      *word_at(m->r[CS_RSP]) = m->r[in->reg];
      break;
    case POP:
      m->r[in->reg] = *word_at(m->r[CS_RSP]);
      m->r[CS_RSP] += 8;
      break;
    case ADD_RSP:
      m->r[CS_RSP] += (uint64_t)in->amount;
      break;
    case LEA_FRAME:
      m->r[in->reg] = m->r[CS_RSP] + (uint64_t)in->amount;
      break;
    case LEA_RSP:
      m->r[CS_RSP] = m->r[in->reg] + (uint64_t)in->amount;
      break;
    case STORE:
      *word_at(m->r[CS_RSP] + (uint64_t)in->amount) = m->r[in->reg];
      break;
    case LOAD:
      m->r[in->reg] = *word_at(m->r[CS_RSP] + (uint64_t)in->amount);
      break;
    case LEAVE:
      break;
  }
  m->r[CS_RIP] += in->size;
}

static void check_callers(const char *name, unsigned at, const struct cs_regs *got,
                          const struct cs_regs *want) {
  static const uint8_t checked[] = {CS_RIP, CS_RSP, CS_RBX, CS_RBP, CS_R12, CS_R13, CS_R14, CS_R15};
  for (unsigned i = 0; i < CS_COUNT(checked); i++) {
    unsigned reg = checked[i];
    if (got->r[reg] != want->r[reg])
      fail_msg("%s, instruction %u: register %u is %#llx, not %#llx", name, at, reg,
               (unsigned long long)got->r[reg], (unsigned long long)want->r[reg]);
    assert_true(got->known & CS_REG_BIT(reg));
  }
  assert_int_equal(got->known & ~CS_REGS_PRESERVED, 0);
}

// In the body (after the prolog and before the epilog), the interned rule steps exactly as the
// unwind data does.
static void check_rule(const struct fake_clr *clr, const char *name, unsigned at,
                       const struct cs_code *code, const struct cs_stack *stack,
                       const struct cs_regs *body, const struct cs_regs *caller) {
  static struct cs_sites sites;
  struct cs_cfi_rule rule;
  struct cs_regs regs = *body, by_site = *body;
  assert_true(cs_rule_of_managed(&clr->world, code, NULL, body->r[CS_RIP], &rule));
  assert_int_equal(cs_rule_apply(&rule, &clr->world.mem, stack, &regs), CS_STOP_NONE);
  check_callers(name, at, &regs, caller);
  cs_sites_add(&sites, body->r[CS_RIP], &rule, CS_CODE_JIT);
  cs_site site = cs_sites_find(&sites, body->r[CS_RIP]);
  if (rule.cfa_reg != CS_RSP && rule.cfa_reg != CS_RBP) return;
  assert_int_equal(CS_SITE_KIND(site), CS_CODE_JIT);
  assert_int_equal(cs_site_apply(&sites, site, &clr->world.mem, stack, &by_site), CS_STOP_NONE);
  check_callers(name, at, &by_site, caller);
}

// A return address in the prolog (of a helper that touches a large frame's pages): only what has
// been done so far is undone, and no rule is kept.
static void check_call_in_prolog(const struct fake_clr *clr, const char *name, unsigned at,
                                 const struct cs_code *code, const struct cs_stack *stack,
                                 const struct cs_regs *there, const struct cs_regs *caller) {
  struct cs_cfi_rule rule;
  struct cs_regs regs = *there;
  assert_false(cs_rule_of_managed(&clr->world, code, NULL, there->r[CS_RIP], &rule));
  assert_int_equal(cs_unwind_managed(&clr->world, code, stack, false, &regs), CS_STOP_NONE);
  check_callers(name, at, &regs, caller);
}

static void check_at_every_instruction(const struct method *method) {
  struct fake_clr clr;
  fake_clr_init(&clr);
  uint8_t code[512];
  unsigned size = 0;
  for (unsigned i = 0; i < method->count; i++) {
    memcpy(code + size, method->insns[i].bytes, method->insns[i].size);
    size += method->insns[i].size;
  }
  struct fake_function f = {code, size, method->unwind, method->unwind_size};
  uint64_t start = fake_clr_add_method(&clr, &f, 1, 1, 0);
  struct cs_code found;
  assert_int_equal(cs_codemap_find(&clr.world, start, &found), CS_STOP_NONE);

  struct cs_stack stack = {.lo = (uint64_t)(uintptr_t)stack_words,
                           .hi = (uint64_t)(uintptr_t)(stack_words + WORDS)};
  struct cs_regs caller = {.known = CS_REGS_ALL};
  for (unsigned i = 0; i < CS_REG_COUNT; i++) caller.r[i] = 0xABC000 + i * 0x111;
  caller.r[CS_RSP] = stack.hi - 512;
  caller.r[CS_RIP] = RETURN_IP;
  struct cs_regs m = caller;
  m.r[CS_RSP] -= 8;
  *word_at(m.r[CS_RSP]) = RETURN_IP;
  m.r[CS_RIP] = start;
  for (unsigned i = 0; i < method->count; i++) {
    struct cs_regs regs = m;
    assert_int_equal(cs_unwind_managed(&clr.world, &found, &stack, true, &regs), CS_STOP_NONE);
    check_callers(method->name, i, &regs, &caller);
    if (i != 0 && m.r[CS_RIP] - start < method->unwind[1])
      check_call_in_prolog(&clr, method->name, i, &found, &stack, &m, &caller);
    if (i == method->body) check_rule(&clr, method->name, i, &found, &stack, &m, &caller);
    run_one(&m, &method->insns[i]);
  }
  fake_clr_free(&clr);
}

#define INSN(bytes, ...) \
  { bytes, sizeof bytes - 1, __VA_ARGS__ }
#define METHOD(n, body) \
  { #n, n##_insns, CS_COUNT(n##_insns), n##_info, sizeof n##_info, body }

// The common shape: saved registers, locals, rbp as an undescribed frame register.
static const struct insn plain_insns[] = {
    INSN("\x55", PUSH, CS_RBP, 0),
    INSN("\x41\x57", PUSH, CS_R15, 0),
    INSN("\x53", PUSH, CS_RBX, 0),
    INSN("\x48\x83\xEC\x28", ADD_RSP, 0, -0x28),
    INSN("\x48\x8D\x6C\x24\x38", LEA_FRAME, CS_RBP, 0x38),
    INSN("\x90", NOTHING, 0, 0),
    INSN("\x48\x31\xC0", NOTHING, 0, 0),
    INSN("\x48\x83\xC4\x28", ADD_RSP, 0, 0x28),
    INSN("\x5B", POP, CS_RBX, 0),
    INSN("\x41\x5F", POP, CS_R15, 0),
    INSN("\x5D", POP, CS_RBP, 0),
    INSN("\xC3", LEAVE, 0, 0),
};
static const uint8_t plain_info[] = {1, 8, 4, 0, 8, 0x42, 4, 0x30, 3, 0xF0, 1, 0x50};

// A frame register that is described, and a stackalloc in the body.
static const struct insn frame_insns[] = {
    INSN("\x55", PUSH, CS_RBP, 0),
    INSN("\x41\x54", PUSH, CS_R12, 0),
    INSN("\x48\x83\xEC\x20", ADD_RSP, 0, -0x20),
    INSN("\x48\x8D\x6C\x24\x20", LEA_FRAME, CS_RBP, 0x20),
    INSN("\x48\x81\xEC\x00\x04\x00\x00", ADD_RSP, 0, -0x400),
    INSN("\x90", NOTHING, 0, 0),
    INSN("\x48\x8D\x65\x00", LEA_RSP, CS_RBP, 0),
    INSN("\x41\x5C", POP, CS_R12, 0),
    INSN("\x5D", POP, CS_RBP, 0),
    INSN("\xC3", LEAVE, 0, 0),
};
static const uint8_t frame_info[] = {1, 12, 4, 0x25, 12, 0x03, 7, 0x32, 3, 0xC0, 1, 0x50};

// An operation of Unix only: a frame offset that is too large for the header's four bits.
static const struct insn far_frame_insns[] = {
    INSN("\x55", PUSH, CS_RBP, 0),
    INSN("\x48\x81\xEC\x00\x08\x00\x00", ADD_RSP, 0, -0x800),
    INSN("\x48\x8D\xAC\x24\x00\x08\x00\x00", LEA_FRAME, CS_RBP, 0x800),
    INSN("\x48\x83\xEC\x40", ADD_RSP, 0, -0x40),
    INSN("\x48\x8D\x65\x00", LEA_RSP, CS_RBP, 0),
    INSN("\x5D", POP, CS_RBP, 0),
    INSN("\xC3", LEAVE, 0, 0),
};
static const uint8_t far_frame_info[] = {1,    16,   6, 0xF5, 16,   0x0B, 0x80, 0x00,
                                         0x00, 0x00, 8, 0x01, 0x00, 0x01, 1,    0x50};

// Registers stored by mov, a large frame, and a scratch push for alignment.
static const struct insn saves_insns[] = {
    INSN("\x50", ADD_RSP, 0, -8),
    INSN("\x48\x81\xEC\x00\x10\x00\x00", ADD_RSP, 0, -0x1000),
    INSN("\x4C\x89\xAC\x24\x20\x00\x00\x00", STORE, CS_R13, 0x20),
    INSN("\x48\x89\x9C\x24\x28\x00\x00\x00", STORE, CS_RBX, 0x28),
    INSN("\x90", NOTHING, 0, 0),
    INSN("\x48\x8B\x9C\x24\x28\x00\x00\x00", LOAD, CS_RBX, 0x28),
    INSN("\x4C\x8B\xAC\x24\x20\x00\x00\x00", LOAD, CS_R13, 0x20),
    INSN("\x48\x81\xC4\x08\x10\x00\x00", ADD_RSP, 0, 0x1008),
    INSN("\xC3", LEAVE, 0, 0),
};
static const uint8_t saves_info[] = {1,  24,   8, 0, 24, 0x35, 0x28, 0,    0, 0,
                                     16, 0xD4, 4, 0, 8,  0x01, 0x00, 0x02, 1, 0x02};

// Leaving by a tail jump through a register and by ret imm16; and a leaf without a frame.
static const struct insn tail_insns[] = {
    INSN("\x41\x56", PUSH, CS_R14, 0), INSN("\x48\x83\xEC\x20", ADD_RSP, 0, -0x20),
    INSN("\x90", NOTHING, 0, 0),       INSN("\x48\x83\xC4\x20", ADD_RSP, 0, 0x20),
    INSN("\x41\x5E", POP, CS_R14, 0),  INSN("\x48\xFF\xE0", LEAVE, 0, 0),
};
static const uint8_t tail_info[] = {1, 6, 2, 0, 6, 0x32, 2, 0xE0};
static const struct insn ret_imm_insns[] = {
    INSN("\x41\x55", PUSH, CS_R13, 0),
    INSN("\x90", NOTHING, 0, 0),
    INSN("\x41\x5D", POP, CS_R13, 0),
    INSN("\xC2\x08\x00", LEAVE, 0, 0),
};
static const uint8_t ret_imm_info[] = {1, 2, 1, 0, 2, 0xD0, 0, 0};
static const struct insn leaf_insns[] = {INSN("\x48\x31\xC0", NOTHING, 0, 0),
                                         INSN("\xF3\xC3", LEAVE, 0, 0)};
static const uint8_t leaf_info[] = {1, 0, 0, 0};

static void every_instruction_of_every_shape(void **state) {
  (void)state;
  static const struct method methods[] = {METHOD(plain, 5), METHOD(frame, 5), METHOD(far_frame, 4),
                                          METHOD(saves, 4), METHOD(tail, 2),  METHOD(ret_imm, 1),
                                          METHOD(leaf, 0)};
  for (unsigned i = 0; i < CS_COUNT(methods); i++) check_at_every_instruction(&methods[i]);
}

// A jump at the end of a method with a frame: a jump to the method's own cold part belongs to the
// body, any other is an epilog.
static void jumps_to_cold_parts_are_not_epilogs(void **state) {
  (void)state;
  struct fake_clr clr;
  fake_clr_init(&clr);
  // hot: sub rsp, 0x28 / jmp cold;  cold: its info is chained to hot's;  other: a method of its own
  uint8_t hot[16] = {0x48, 0x83, 0xEC, 0x28, 0xE9}, cold[16] = {0x90}, other[16] = {0x90};
  uint8_t hot_info[] = {1, 4, 1, 0, 4, 0x42, 0, 0};
  uint8_t cold_info[16] = {1 | CS_REG_BIT(5), 0, 0, 0};  // CHAININFO: flags 4, at bit 3 of byte 0
  uint64_t starts[3];
  struct fake_function f[3] = {{hot, 9, hot_info, sizeof hot_info},
                               {cold, 16, cold_info, sizeof cold_info},
                               {other, 16, leaf_info, sizeof leaf_info}};
  uint64_t base = fake_clr_add_image(&clr, f, 3, starts);
  struct cs_code code;
  assert_int_equal(cs_codemap_find(&clr.world, starts[0], &code), CS_STOP_NONE);
  uint32_t hot_rva = (uint32_t)(code.unwind_info - base);
  assert_int_equal(cs_codemap_find(&clr.world, starts[1], &code), CS_STOP_NONE);
  memcpy((void *)(uintptr_t)(code.unwind_info + 12), &hot_rva, 4);  // the parent's UnwindData

  struct cs_stack stack = {.lo = (uint64_t)(uintptr_t)stack_words,
                           .hi = (uint64_t)(uintptr_t)(stack_words + WORDS)};
  uint64_t sp = stack.hi - 256;
  memset(stack_words, 0, sizeof stack_words);
  *word_at(sp) = 0x5151;         // what an epilog would take as the return address
  *word_at(sp + 0x28) = 0x6262;  // the true return address
  for (unsigned to = 1; to <= 2; to++) {
    int32_t rel = (int32_t)(starts[to] - (starts[0] + 9));
    memcpy((void *)(uintptr_t)(starts[0] + 5), &rel, 4);
    struct cs_regs regs = {.known = CS_REGS_ALL};
    regs.r[CS_RIP] = starts[0] + 4;
    regs.r[CS_RSP] = sp;
    assert_int_equal(cs_codemap_find(&clr.world, regs.r[CS_RIP], &code), CS_STOP_NONE);
    assert_int_equal(cs_unwind_managed(&clr.world, &code, &stack, true, &regs), CS_STOP_NONE);
    assert_int_equal(regs.r[CS_RIP], to == 1 ? 0x6262 : 0x5151);
  }
  // In the cold part, the whole prolog of the hot part is undone.
  struct cs_regs regs = {.known = CS_REGS_ALL};
  regs.r[CS_RIP] = starts[1];
  regs.r[CS_RSP] = sp;
  assert_int_equal(cs_codemap_find(&clr.world, starts[1], &code), CS_STOP_NONE);
  assert_int_equal(cs_unwind_managed(&clr.world, &code, &stack, true, &regs), CS_STOP_NONE);
  assert_int_equal(regs.r[CS_RIP], 0x6262);
  fake_clr_free(&clr);
}

static enum cs_stop unwind_with(const uint8_t *info, unsigned size, struct cs_regs *regs) {
  static uint8_t nops[64] = {0x90};
  struct fake_clr clr;
  fake_clr_init(&clr);
  struct fake_function f = {nops, sizeof nops, info, size};
  uint64_t start = fake_clr_add_method(&clr, &f, 1, 1, 0);
  struct cs_code code;
  struct cs_stack stack = {.lo = (uint64_t)(uintptr_t)stack_words,
                           .hi = (uint64_t)(uintptr_t)(stack_words + WORDS)};
  assert_int_equal(cs_codemap_find(&clr.world, start, &code), CS_STOP_NONE);
  regs->known = CS_REGS_ALL;
  for (unsigned i = 0; i < CS_REG_COUNT; i++) regs->r[i] = stack.hi - 128;
  regs->r[CS_RIP] = start + 50;
  struct cs_regs before = *regs;
  enum cs_stop stop = cs_unwind_managed(&clr.world, &code, &stack, true, regs);
  if (stop != CS_STOP_NONE) assert_memory_equal(&before, regs, sizeof before);
  fake_clr_free(&clr);
  return stop;
}

static void refuses_what_is_malformed(void **state) {
  (void)state;
  struct cs_regs regs;
  const uint8_t version2[] = {2, 0, 0, 0}, epilog_op[] = {1, 4, 2, 0, 4, 0x06, 0, 0};
  const uint8_t cut_op[] = {1, 4, 1, 0, 4, 0x01, 0, 0}, no_op[] = {1, 4, 1, 0, 4, 0x0F, 0, 0};
  const uint8_t huge[] = {1, 4, 3, 0, 4, 0x11, 0xFF, 0xFF, 0xFF, 0x7F, 0, 0};
  assert_int_equal(unwind_with(version2, sizeof version2, &regs), CS_STOP_UNWIND_VERSION);
  assert_int_equal(unwind_with(epilog_op, sizeof epilog_op, &regs), CS_STOP_BAD_UNWIND);
  assert_int_equal(unwind_with(cut_op, sizeof cut_op, &regs), CS_STOP_BAD_UNWIND);
  assert_int_equal(unwind_with(no_op, sizeof no_op, &regs), CS_STOP_BAD_UNWIND);
  assert_int_equal(unwind_with(huge, sizeof huge, &regs), CS_STOP_BAD_SP);
}

// Random bytes are unwound or refused, but never lead to a read outside the stack, which the
// stack's bounds and the sanitizer build would detect.
static void survives_random_unwind_info(void **state) {
  (void)state;
  srand(20261);
  for (unsigned round = 0; round < 3000; round++) {
    uint8_t info[560];
    struct cs_regs regs;
    for (unsigned i = 0; i < sizeof info; i++) info[i] = (uint8_t)rand();
    info[0] = (uint8_t)(1 | ((info[0] & 3) << 3));  // version 1; no chain: its target is random
    unwind_with(info, sizeof info, &regs);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_instruction_of_every_shape),
      cmocka_unit_test(jumps_to_cold_parts_are_not_epilogs),
      cmocka_unit_test(refuses_what_is_malformed),
      cmocka_unit_test(survives_random_unwind_info),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
