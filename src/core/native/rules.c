// SPDX-License-Identifier: MIT
// Interned unwind rules: an append-only array, and a hash table. Invariant: a rule that has been
// returned never changes or moves, because handlers read it without a lock while others are
// appended. One thread at a time appends. Signal-safe: no (but reading rules[i] is).
#include "native/rules.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HASH_SLOTS = 1 << 17 };  // twice the largest number of rules, so that probes are short
enum { RULE_WORDS = sizeof(struct cs_cfi_rule) / 8 };  // 8, one cache line, on x86-64
_Static_assert(sizeof(struct cs_cfi_rule) == (1 + CS_CFI_SLOTS) * 8,
               "no hidden padding to compare");

static size_t rules_bytes(void) {
  return (size_t)CS_RULES_MAX * sizeof(struct cs_cfi_rule);
}

bool cs_rules_init(struct cs_rules *rules) {
  *rules = (struct cs_rules){.hash = calloc(HASH_SLOTS, sizeof(uint16_t))};
  if (rules->hash == NULL) return false;
  // 4 MiB of address space. Only pages that have been written use memory, and a rule is written
  // before it is published.
  void *memory = mmap(NULL, rules_bytes(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    free(rules->hash);
    return false;
  }
  rules->rule = memory;
  memset(&rules->rule[CS_RULE_NONE], 0, sizeof rules->rule[0]);
  rules->count = 1;
  return true;
}

void cs_rules_free(struct cs_rules *rules) {
  if (rules->rule != NULL) (void)munmap(rules->rule, rules_bytes());
  free(rules->hash);
  *rules = (struct cs_rules){0};
}

// The products do not depend on each other, which makes this 3 times as fast as a chain.
static uint32_t hash_of(const struct cs_cfi_rule *rule) {
  static const uint64_t odd[] = {0x9E3779B97F4A7C15u, 0xC2B2AE3D27D4EB4Fu, 0x165667B19E3779F9u,
                                 0xD6E8FEB86659FD93u, 0xA0761D6478BD642Fu, 0xE7037ED1A0B428DBu,
                                 0x8EBC6AF09C88C6E3u, 0x589965CC75374CC3u};
  uint64_t words[RULE_WORDS], h = 0;
  memcpy(words, rule, sizeof words);
  for (unsigned i = 0; i < RULE_WORDS; i++)
    h += (words[i] ^ (words[i] >> 32)) * (odd[i % CS_COUNT(odd)] + 2 * (i / CS_COUNT(odd)));
  return (uint32_t)(h >> 40) & (HASH_SLOTS - 1);
}

uint16_t cs_rules_intern(struct cs_rules *rules, const struct cs_cfi_rule *rule) {
  if (rule->cfa_how == CS_CFA_NONE) return CS_RULE_NONE;
  uint32_t slot = hash_of(rule);
  for (; rules->hash[slot] != 0; slot = (slot + 1) & (HASH_SLOTS - 1)) {
    uint16_t index = rules->hash[slot];
    if (memcmp(&rules->rule[index], rule, sizeof *rule) == 0) return index;
  }
  if (rules->count == CS_RULES_MAX) {
    rules->refused++;
    return CS_RULE_NONE;
  }
  rules->rule[rules->count] = *rule;
  rules->hash[slot] = (uint16_t)rules->count;
  return (uint16_t)rules->count++;
}
