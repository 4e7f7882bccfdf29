// SPDX-License-Identifier: MIT
// Interned unwind rules. Not for handlers, which only read the array.
#pragma once

#include "images/images.h"

// An index has 16 bits, and CS_NO_RULE is not an index. libcoreclr, libclrjit, libclrgc, libstdc++,
// OpenSSL, ICU and libc together (22 images, 409,000 rows) need 1,042 rules.
enum { CS_RULES_MAX = 0xFFFF };
enum { CS_RULE_NONE };  // index of the rule for "no supported rule"

struct cs_rules {
  struct cs_cfi_rule *rule;  // reserves CS_RULES_MAX, so that it never moves
  uint32_t count;
  uint32_t refused;  // rules that did not fit
  uint16_t *hash;    // indices of rules; 0 is free (CS_RULE_NONE is never looked up)
};

bool cs_rules_init(struct cs_rules *rules);
void cs_rules_free(struct cs_rules *rules);
// Returns the rule's index: CS_RULE_NONE for a rule without a CFA, and if the table is full.
uint16_t cs_rules_intern(struct cs_rules *rules, const struct cs_cfi_rule *rule);
