// SPDX-License-Identifier: MIT
// _init and _fini are assembled from pieces of every object file (crti.o has their start, crtn.o
// their end), so no compiler describes them. They allocate one word on the stack and free it: sub
// rsp, 8; ...; add rsp, 8; ret, possibly after an endbr64. Invariant: rows are added only where
// there were none, and only if the code has that form. Not for handlers.
#include "native/startup.h"

#include <string.h>

#include "base/regs.h"
#include "native/cfi_private.h"

enum { LONGEST = 64 };  // bytes: 23 or 27 with the call of __gmon_start__

static uint16_t plain_rule(struct cs_rules *rules, int32_t cfa) {
  struct cs_cfi_rule rule;
  memset(&rule, 0, sizeof rule);
  rule.cfa_how = CS_CFA_REG;
  rule.cfa_reg = CS_RSP;
  rule.cfa_off = cfa;
  rule.slot[CS_CFI_RA].how = CS_CFI_AT_CFA;
  rule.slot[CS_CFI_RA].off = -8;
  return cs_rules_intern(rules, &rule);
}

struct shape {
  uint32_t allocated, freed, end;  // offsets after sub, after add, after ret
};

static bool is_startup(const uint8_t *code, size_t size, struct shape *shape) {
  static const uint8_t endbr[] = {0xF3, 0x0F, 0x1E, 0xFA}, sub[] = {0x48, 0x83, 0xEC, 0x08},
                       leave[] = {0x48, 0x83, 0xC4, 0x08, 0xC3};
  size_t at = size > sizeof endbr && memcmp(code, endbr, sizeof endbr) == 0 ? sizeof endbr : 0;
  if (size - at < sizeof sub || memcmp(code + at, sub, sizeof sub) != 0) return false;
  at += sizeof sub;
  shape->allocated = (uint32_t)at;
  for (; at + sizeof leave <= size; at++) {
    if (memcmp(code + at, leave, sizeof leave) != 0) continue;
    shape->freed = (uint32_t)(at + 4);
    shape->end = (uint32_t)(at + sizeof leave);
    return true;
  }
  return false;
}

// Returns the rule at an offset, and in *end how far it applies.
static uint16_t rule_at(const struct cs_rows *rows, uint32_t offset, uint32_t *end) {
  uint16_t rule = CS_NO_RULE;
  *end = UINT32_MAX;
  for (uint32_t i = 0; i < rows->count; i++) {
    if (rows->ip[i] > offset) {
      *end = rows->ip[i];
      break;
    }
    rule = rows->rule[i];
  }
  return rule;
}

static bool insert(const struct shape *shape, uint32_t at, struct cs_rules *rules,
                   struct cs_rows *rows) {
  struct cs_rows out = {0};
  uint16_t outside = plain_rule(rules, 8), inside = plain_rule(rules, 16);
  uint32_t i = 0;
  bool ok = true;
  for (; ok && i < rows->count && rows->ip[i] <= at; i++)
    ok = cs_rows_add(&out, rows->ip[i], rows->rule[i]);
  ok = ok && cs_rows_add(&out, at, outside) && cs_rows_add(&out, at + shape->allocated, inside) &&
       cs_rows_add(&out, at + shape->freed, outside) &&
       cs_rows_add(&out, at + shape->end, CS_NO_RULE);
  for (; ok && i < rows->count; i++) ok = cs_rows_add(&out, rows->ip[i], rows->rule[i]);
  if (!ok) {
    cs_rows_free(&out);
    return false;
  }
  cs_rows_free(rows);
  *rows = out;
  return true;
}

bool cs_startup_apply(struct cs_process_memory *process, const struct cs_candidate *candidate,
                      uint64_t address, struct cs_rules *rules, struct cs_rows *rows) {
  uint8_t code[LONGEST];
  struct shape shape;
  uint32_t end;
  if (rows->count == 0 || address < candidate->begin || address >= candidate->end) return true;
  uint32_t at = (uint32_t)(address - candidate->begin);
  if (rule_at(rows, at, &end) != CS_NO_RULE) return true;
  uint64_t size = candidate->end - address;
  if (size > end - at) size = end - at;
  if (size > sizeof code) size = sizeof code;
  if (!cs_process_memory_read(process, address, code, (size_t)size) ||
      !is_startup(code, (size_t)size, &shape))
    return true;
  return insert(&shape, at, rules, rows);
}

// On this architecture the program's start and the vDSO have unwind data.
bool cs_startup_apply_entry(struct cs_process_memory *process, const struct cs_candidate *candidate,
                            uint64_t address, struct cs_rules *rules, struct cs_rows *rows) {
  (void)process;
  (void)candidate;
  (void)address;
  (void)rules;
  (void)rows;
  return true;
}

bool cs_startup_apply_vdso(struct cs_process_memory *process, const struct cs_candidate *candidate,
                           struct cs_rules *rules, struct cs_rows *rows) {
  (void)process;
  (void)candidate;
  (void)rules;
  (void)rows;
  return false;
}
