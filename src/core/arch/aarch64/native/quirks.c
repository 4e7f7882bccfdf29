// SPDX-License-Identifier: MIT
// Hand-written code of CoreCLR whose .eh_frame is wrong (seen on .NET 10.0.9). Each function is
// recognised by its code or by a contradiction in its rows, and gets rows of its own; if it is not
// found, the rows stay as they are. Not for handlers.
//
//   CallSignalHandlerWrapper0 and 8
//       The frame between the code that has faulted and the runtime's handler, which the runtime
//       fakes. Its rows lead to the ip and fp that its creator has stored. They present the
//       handler's own x19 to x28 as the interrupted ones, and its caller is not at a call.
//   RtlRestoreContext
//       loads the registers of a CONTEXT one by one, lr among them, and jumps; .eh_frame describes
//       a leaf.
//   Epilogs
//       The runtime's macros for assembly set the CFA relative to fp, and describe their epilogs
//       as if it were relative to sp: it moves where sp does, and is still relative to fp when fp
//       has its caller's value again. What follows the first epilog of a function with two is
//       described as if its registers were restored already. This concerns 30 functions: the
//       prestub, the trip wire, stub dispatch, delay-load helpers, hooks, helpers that allocate or
//       throw.
#include "native/quirks.h"

#include <stdlib.h>
#include <string.h>

#include "base/regs.h"
#include "native/cfi_private.h"
#include "native/dwarf.h"

enum { WORD = 4 };

struct correction {  // of an image's rows, in the order of its text
  const uint8_t *text;
  size_t size;
  struct cs_rules *rules;
  const struct cs_rows *rows;
  struct cs_rows out;
  unsigned found;
  bool ok;
};

static uint32_t code_at(const struct correction *c, size_t at) {
  uint32_t word = 0;
  if (at + WORD <= c->size) memcpy(&word, c->text + at, WORD);
  return word;
}

static void add(struct correction *c, uint32_t ip, uint16_t rule) {
  c->ok = c->ok && cs_rows_add(&c->out, ip, rule);
}

static void add_rule(struct correction *c, uint32_t ip, const struct cs_cfi_rule *rule) {
  add(c, ip, cs_rules_intern(c->rules, rule));
}

static const struct cs_cfi_rule *rule_of(const struct correction *c, uint32_t row) {
  static const struct cs_cfi_rule none = {.cfa_how = CS_CFA_NONE};
  uint16_t rule = c->rows->rule[row];
  return rule == CS_NO_RULE || rule == CS_RULE_NONE ? &none : &c->rules->rule[rule];
}

static struct cs_cfi_rule leaf(void) {
  struct cs_cfi_rule rule;
  memset(&rule, 0, sizeof rule);
  rule.cfa_how = CS_CFA_REG;
  rule.cfa_reg = CS_SP;
  cs_dwarf_at_entry(&rule);
  return rule;
}

// ---- The fault wrappers ----

// sub sp, sp, n; stp fp, lr, [sp]; mov fp, sp; bl; ldp fp, lr, [sp]; add sp, sp, n; ret. The word
// before has the offset of the return address, which is 16.
static uint32_t wrapper_end(const struct correction *c, uint32_t at) {
  enum { SUB = 0xD10003FF, ADD = 0x910003FF, NUMBER = 0x003FFC00, RETURN = 16, SIZE = 28 };
  uint32_t n = code_at(c, at) & NUMBER;
  bool is = at >= WORD && code_at(c, at - WORD) == RETURN && code_at(c, at) == (SUB | n) &&
            code_at(c, at + 4) == 0xA9007BFD && code_at(c, at + 8) == 0x910003FD &&
            code_at(c, at + 12) >> 26 == 0x25 && code_at(c, at + 16) == 0xA9407BFD &&
            code_at(c, at + 20) == (ADD | n) && code_at(c, at + 24) == 0xD65F03C0;
  return is ? at + SIZE : 0;
}

// The function never runs: only its call "returns".
static void correct_wrapper(struct correction *c, uint32_t at) {
  struct cs_cfi_rule rule = leaf();
  int32_t size = (int32_t)(code_at(c, at) >> 10 & 0xFFF);
  rule.cfa_how = CS_CFA_FAULT;
  rule.cfa_off = size;
  for (unsigned i = CS_CFI_X19; i < CS_CFI_FP; i++) rule.slot[i].how = CS_CFI_UNDEFINED;
  rule.slot[CS_CFI_FP].how = rule.slot[CS_CFI_RA].how = CS_CFI_AT_CFA;
  rule.slot[CS_CFI_FP].off = -size;
  rule.slot[CS_CFI_RA].off = -size + 8;
  add_rule(c, at, &rule);
}

// ---- RtlRestoreContext ----

// mov x16, x0; ldr w17, [x16]; ...; ldp x16, x17, [x16, 256]; mov sp, x16; br x17; ret.
static uint32_t restore_end(const struct correction *c, uint32_t at) {
  enum { LONGEST = 1024 };
  if (code_at(c, at) != 0xAA0003F0 || code_at(c, at + 4) != 0xB9400211) return 0;
  for (uint32_t end = at + 8; end < at + LONGEST; end += WORD)
    if (code_at(c, end) == 0xA9504610 && code_at(c, end + 4) == 0x9100021F &&
        code_at(c, end + 8) == 0xD61F0220 && code_at(c, end + 12) == 0xD65F03C0)
      return end + 16;
  return 0;
}

// All registers but pc, and sp until the last step, are those of the place where it continues.
static void add_jump(struct correction *c, uint32_t at, uint8_t sp) {
  struct cs_cfi_rule rule;
  memset(&rule, 0, sizeof rule);
  rule.cfa_how = CS_CFA_RESUME;
  rule.cfa_reg = rule.cfa_add = sp;
  rule.slot[CS_CFI_RA].how = CS_CFI_IN_REG;
  rule.slot[CS_CFI_RA].off = CS_X17;
  add_rule(c, at, &rule);
}

// x16 points to the CONTEXT, or further where vector registers are loaded.
static void correct_restore(struct correction *c, uint32_t at, uint32_t end) {
  enum { MASK = 0xFFC003FF, ADD = 0x91000210, SUB = 0xD1000210 };
  struct cs_cfi_rule rule = leaf();
  add_rule(c, at, &rule);
  memset(&rule, 0, sizeof rule);
  rule.cfa_how = CS_CFA_CONTEXT;
  rule.cfa_reg = CS_X16;
  add_rule(c, at + WORD, &rule);
  for (uint32_t i = at + WORD; i < end - 16; i += WORD) {
    uint32_t code = code_at(c, i);
    int32_t number = (int32_t)(code >> 10 & 0xFFF);
    if ((code & MASK) == ADD) rule.cfa_off -= number;
    if ((code & MASK) == SUB) rule.cfa_off += number;
    add_rule(c, i + WORD, &rule);
  }
  add_jump(c, end - 12, CS_X16);
  add_jump(c, end - 8, CS_SP);
  rule = leaf();
  add_rule(c, end - 4, &rule);
}

// ---- Epilogs ----

static bool by_fp(const struct cs_cfi_rule *rule) {
  return rule->cfa_how == CS_CFA_REG && rule->cfa_reg == CS_FP;
}

static unsigned saved(const struct cs_cfi_rule *rule) {
  unsigned n = 0;
  for (unsigned i = 0; i < CS_CFI_SLOTS; i++) n += rule->slot[i].how == CS_CFI_AT_CFA;
  return n;
}

// Compiled code has one CFA relative to fp, and none where fp is its caller's.
static bool contradicts(const struct cs_cfi_rule *first, const struct cs_cfi_rule *rule) {
  return rule->cfa_off != first->cfa_off || rule->slot[CS_CFI_FP].how != CS_CFI_AT_CFA;
}

// Returns the row among [begin, end), whose CFAs are relative to fp, at which the frame is
// complete.
static uint32_t complete_row(const struct correction *c, uint32_t begin, uint32_t end) {
  uint32_t best = begin;
  for (uint32_t i = begin; i < end && !contradicts(rule_of(c, begin), rule_of(c, i)); i++)
    if (saved(rule_of(c, i)) > saved(rule_of(c, best))) best = i;
  return best;
}

// Returns whether the instruction may leave the function: ret, br or b.
static bool is_exit(uint32_t code) {
  return (code & 0xFFFFFC1F) == 0xD65F0000 || (code & 0xFFFFFC1F) == 0xD61F0000 || code >> 26 == 5;
}

// Rows for the rest of a function whose frame is complete at the row `full`: until ldp fp, lr,
// [sp], n has loaded them, everything is still in the frame; from there until it leaves, it is a
// leaf. Without such an epilog, rows that contradict the frame lose their rules.
static void correct_epilogs(struct correction *c, uint32_t full, uint32_t row_end) {
  enum { LDP = 0xA8C07BFD, LDP_MASK = 0xFFC07FFF };
  const struct cs_cfi_rule frame = *rule_of(c, full), after = leaf();
  uint32_t end = row_end < c->rows->count ? c->rows->ip[row_end] : (uint32_t)c->size;
  bool found = false;
  add_rule(c, c->rows->ip[full], &frame);
  for (uint32_t at = c->rows->ip[full]; at + WORD < end; at += WORD) {
    if ((code_at(c, at) & LDP_MASK) != LDP) continue;
    found = true;
    add_rule(c, at + WORD, &after);
    while (at + WORD < end && !is_exit(code_at(c, at))) at += WORD;
    if (at + WORD < end) add_rule(c, at + WORD, &frame);
  }
  for (uint32_t i = full + 1; !found && i < row_end; i++)
    add(c, c->rows->ip[i], contradicts(&frame, rule_of(c, i)) ? CS_RULE_NONE : c->rows->rule[i]);
}

// stp fp, lr, [sp, -n]!; mov fp, sp: where the macros begin.
static bool is_macro(const struct correction *c, uint32_t ip) {
  enum { STP = 0xA9807BFD, STP_MASK = 0xFFC07FFF, MOV = 0x910003FD };
  return ip >= 2 * WORD && (code_at(c, ip - 2 * WORD) & STP_MASK) == STP &&
         code_at(c, ip - WORD) == MOV;
}

// Copies the rows from `row` on whose CFAs are relative to fp, corrected if they contradict each
// other. Returns the row after them.
static uint32_t copy_frame(struct correction *c, uint32_t row) {
  uint32_t end = row, full;
  bool wrong = false;
  for (; end < c->rows->count && by_fp(rule_of(c, end)); end++)
    wrong = wrong || contradicts(rule_of(c, row), rule_of(c, end));
  wrong = wrong && is_macro(c, c->rows->ip[row]) &&
          rule_of(c, row)->slot[CS_CFI_FP].how == CS_CFI_AT_CFA;
  full = wrong ? complete_row(c, row, end) : end;
  for (uint32_t i = row; i < full; i++) add(c, c->rows->ip[i], c->rows->rule[i]);
  if (wrong) correct_epilogs(c, full, end);
  return end;
}

// ---- The whole text ----

// Returns the next function that is recognised by its code, at or after `at`, or the text's `size`
// if there is none.
static uint32_t next_named(const struct correction *c, uint32_t at, uint32_t *end) {
  for (; at + WORD <= c->size; at += WORD) {
    *end = wrapper_end(c, at);
    if (*end == 0) *end = restore_end(c, at);
    if (*end != 0) return at;
  }
  return (uint32_t)c->size;
}

static void correct_named(struct correction *c, uint32_t at, uint32_t end) {
  c->found++;
  if (wrapper_end(c, at) != 0)
    correct_wrapper(c, at);
  else
    correct_restore(c, at, end);
}

// Replaces the rows of functions that are recognised by their code. The rule at the end of such a
// function is kept.
static void copy_rows(struct correction *c) {
  uint32_t end = 0, row = 0, named = next_named(c, 0, &end);
  while (row < c->rows->count || named < c->size) {
    uint32_t ip = row < c->rows->count ? c->rows->ip[row] : UINT32_MAX;
    if (named < c->size && named <= ip) {
      uint16_t last = row > 0 ? c->rows->rule[row - 1] : CS_NO_RULE;
      correct_named(c, named, end);
      for (; row < c->rows->count && c->rows->ip[row] <= end; row++) last = c->rows->rule[row];
      add(c, end, last);
      named = next_named(c, end, &end);
    } else if (by_fp(rule_of(c, row))) {
      row = copy_frame(c, row);
    } else {
      add(c, ip, c->rows->rule[row++]);
    }
  }
}

bool cs_quirks_apply(const uint8_t *text, size_t size, struct cs_rules *rules, struct cs_rows *rows,
                     unsigned *found) {
  struct correction c = {
      .text = text, .size = size < UINT32_MAX ? size : 0, .rules = rules, .rows = rows, .ok = true};
  *found = 0;
  copy_rows(&c);
  if (!c.ok) {
    cs_rows_free(&c.out);
    return false;
  }
  *found = c.found;
  cs_rows_free(rows);
  *rows = c.out;
  return true;
}
