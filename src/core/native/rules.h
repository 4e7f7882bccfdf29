// SPDX-License-Identifier: MIT
// Unwind rules, each kept once. Not for handlers; the table itself is read by them.
#ifndef CS_NATIVE_RULES_H
#define CS_NATIVE_RULES_H

#include "images/images.h"

// An index is 16 bits wide and CS_NO_RULE is no index. Measured: libcoreclr, libclrjit, libclrgc,
// libstdc++, OpenSSL, ICU and libc together (22 images, 409,000 rows) come to 1,042 rules.
enum { CS_RULES_MAX = 0xFFFF };
enum { CS_RULE_NONE };  // index of the rule that says "none that is supported"

struct cs_rules {
  struct cs_cfi_rule *rule;  // reserved for CS_RULES_MAX, so that it never moves
  uint32_t count;
  uint32_t refused;  // rules that found no place
  uint16_t *hash;    // index of a rule, 0 = free (CS_RULE_NONE is never looked for)
};

bool cs_rules_init(struct cs_rules *rules);
void cs_rules_free(struct cs_rules *rules);
// The rule's index. CS_RULE_NONE for any rule without a CFA, and when the table is full.
uint16_t cs_rules_intern(struct cs_rules *rules, const struct cs_cfi_rule *rule);

#endif
