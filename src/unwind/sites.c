// SPDX-License-Identifier: MIT
// The cache of call sites and the table of interned rules. Signal-safe: all but cs_sites_forget.
//
// Invariant: a word names a valid entry, and that entry is the rule of the code that is at that
// address now. The first holds because an entry is published before the word; the second because
// code that dies is forgotten while no walk is in flight (cs_sites_forget).
#include "unwind/sites.h"

enum { FREE, WRITING, VALID };
enum { PROBES = 16, IP_BITS = 48 };
#define GOLDEN 0x9E3779B97F4A7C15ull

CS_ISLAND static uint32_t word_index(uint64_t ip) {
  return (uint32_t)((ip * GOLDEN) >> 48) & (CS_SITE_WORDS - 1);
}

CS_ISLAND const struct cs_site_rule *cs_sites_find(const struct cs_sites *sites, uint64_t ip) {
  uint64_t word = cs_load_acquire(&sites->words[word_index(ip)]);
  if ((word >> 16) != ip) return NULL;
  return &sites->entries[word & (CS_SITE_RULES - 1)];
}

CS_ISLAND static bool same(const struct cs_cfi_rule *a, const struct cs_cfi_rule *b) {
  if (a->cfa_how != b->cfa_how || a->cfa_reg != b->cfa_reg || a->cfa_off != b->cfa_off)
    return false;
  for (unsigned i = 0; i < CS_CFI_SLOTS; i++)
    if (a->slot[i].how != b->slot[i].how || a->slot[i].off != b->slot[i].off) return false;
  return true;
}

CS_ISLAND static uint32_t hash(const struct cs_cfi_rule *rule) {
  uint64_t h = rule->cfa_how * 31ull + rule->cfa_reg * 7ull + (uint32_t)rule->cfa_off;
  for (unsigned i = 0; i < CS_CFI_SLOTS; i++)
    h = (h ^ (uint32_t)rule->slot[i].off ^ ((uint64_t)rule->slot[i].how << 32)) * GOLDEN;
  return (uint32_t)(h >> 40);
}

// The entry's number, or -1: the table is full here, or another handler is writing this very entry.
CS_ISLAND static int intern(struct cs_sites *sites, const struct cs_cfi_rule *rule, uint8_t kind) {
  uint32_t at = hash(rule);
  for (unsigned probe = 0; probe < PROBES; probe++) {
    uint32_t index = (at + probe) & (CS_SITE_RULES - 1);
    struct cs_site_rule *entry = &sites->entries[index];
    uint32_t state = cs_load_acquire(&entry->state);
    if (state == FREE) {
      uint32_t expected = FREE;
      if (!cs_cas(&entry->state, &expected, WRITING)) return -1;
      entry->rule = *rule;
      entry->code_kind = kind;
      cs_store_release(&entry->state, VALID);
      return (int)index;
    }
    if (state != VALID) return -1;
    if (entry->code_kind == kind && same(&entry->rule, rule)) return (int)index;
  }
  return -1;
}

CS_ISLAND void cs_sites_add(struct cs_sites *sites, uint64_t ip, const struct cs_cfi_rule *rule,
                            enum cs_code_kind kind) {
  if (ip >> IP_BITS) return;
  int index = intern(sites, rule, (uint8_t)kind);
  if (index >= 0) cs_store_release(&sites->words[word_index(ip)], ip << 16 | (uint32_t)index);
}

void cs_sites_forget(struct cs_sites *sites) {
  for (uint32_t i = 0; i < CS_SITE_WORDS; i++) cs_store_relaxed(&sites->words[i], 0);
}

CS_ISLAND enum cs_stop cs_rule_apply(const struct cs_site_rule *entry, const struct cs_mem *mem,
                                     const struct cs_stack *stack, struct cs_regs *regs) {
  static const uint8_t reg_of[CS_CFI_SLOTS] = {CS_RBX, CS_RBP, CS_R12, CS_R13,
                                               CS_R14, CS_R15, CS_RIP};
  const struct cs_cfi_rule *rule = &entry->rule;
  uint64_t value[CS_CFI_SLOTS];
  if (!(regs->known & CS_REG_BIT(rule->cfa_reg))) return CS_STOP_BAD_UNWIND;
  uint64_t cfa = regs->r[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_off;
  for (unsigned i = 0; i < CS_CFI_SLOTS; i++)
    if (rule->slot[i].how == CS_CFI_AT_CFA &&
        !cs_stack_u64(mem, stack, cfa + (uint64_t)(int64_t)rule->slot[i].off, &value[i]))
      return CS_STOP_BAD_SP;
  for (unsigned i = 0; i < CS_CFI_SLOTS; i++) {
    if (rule->slot[i].how != CS_CFI_AT_CFA) continue;
    regs->r[reg_of[i]] = value[i];
    regs->known |= CS_REG_BIT(reg_of[i]);
  }
  regs->r[CS_RSP] = cfa;
  regs->known &= CS_REGS_PRESERVED;
  return CS_STOP_NONE;
}
