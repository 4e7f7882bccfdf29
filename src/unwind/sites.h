// SPDX-License-Identifier: MIT
// sites: how to step over the frame behind a return address that was seen before, in one cache
// line. Signal-safe: cs_sites_find, cs_sites_add, cs_rule_apply; readers and writers are handlers
// alike, wait-free: who meets a half-written entry takes it for a miss.
//
// A word of the cache is a return address (48 bits) and the number of an interned rule (16 bits),
// so it is read and written whole. Only return addresses are kept: where a frame was interrupted (a
// leaf, or under a signal) prologs and epilogs matter, and those frames decode their unwind data in
// full.
#ifndef CS_SITES_H
#define CS_SITES_H

#include "native/image.h"
#include "unwind/unwind.h"

enum {
  // 512 KiB of words: 65,536 call sites. bench/walk.c: with 16,384 words 64 different stacks of 100
  // frames already evict each other's.
  CS_SITE_WORDS = 1 << 16,
  // Interned rules. All functions of .NET 10's framework together have some 500
  // (docs/performance.md).
  CS_SITE_RULES = 4096,
};

struct cs_site_rule {
  struct cs_cfi_rule rule;
  uint32_t state;     // 0 free, 1 being written, 2 valid
  uint8_t code_kind;  // enum cs_code_kind of the code that it is a rule of
};

struct cs_sites {
  uint64_t words[CS_SITE_WORDS];
  struct cs_site_rule entries[CS_SITE_RULES];
};

// The rule for a return address, or NULL.
CS_ISLAND const struct cs_site_rule *cs_sites_find(const struct cs_sites *sites, uint64_t ip);
// Interns the rule and remembers it for `ip`. Does nothing when the table is full.
CS_ISLAND void cs_sites_add(struct cs_sites *sites, uint64_t ip, const struct cs_cfi_rule *rule,
                            enum cs_code_kind kind);
// Forgets every return address (not the rules). For whoever is about to let code go: after the last
// walk that could have seen it has ended, so that none puts it back. Not for handlers.
void cs_sites_forget(struct cs_sites *sites);

// Steps by a rule. On failure `regs` are unchanged.
CS_ISLAND enum cs_stop cs_rule_apply(const struct cs_site_rule *entry, const struct cs_mem *mem,
                                     const struct cs_stack *stack, struct cs_regs *regs);

// The rule of a native frame at a return address, if it has the plain form that a site can have:
// the CFA from a register, all saved registers at the CFA. NULL otherwise. (unwind/native.c)
CS_ISLAND const struct cs_cfi_rule *cs_native_rule(const struct cs_world *world,
                                                   const struct cs_code *code,
                                                   const struct cs_regs *regs);

// The rule of a managed frame in its body, from its unwind data. False: it has none of that form.
CS_ISLAND bool cs_rule_of_managed(const struct cs_world *world, const struct cs_code *code,
                                  struct cs_cfi_rule *rule);

#endif
