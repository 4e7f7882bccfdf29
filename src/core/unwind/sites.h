// SPDX-License-Identifier: MIT
// The call-site cache: how to step over the frame of a return address that a walk has already
// stepped over, in one cache line. Signal-safe: cs_sites_find, cs_sites_add, cs_rule_apply. Readers
// and writers are handlers, and wait-free: a half-written entry counts as a miss.
//
// A word of the cache has a tag (34 bits of the return address; here and below, of x86-64's
// addresses of 47 bits) and a site (30 bits), so it is read and written as a whole. The other 13
// bits of the address select the line of the table. Both come from a multiplication that loses no
// bits, so tag and line together identify the address. The site contains the CFA, on which the
// look-up of the next frame depends; the rest is in an interned rule, which is read in parallel
// with that look-up. Only return addresses are cached: where a frame was interrupted (a leaf, or
// below a signal frame) prologs and epilogs matter, and its unwind data is decoded in full.
#pragma once

#include "images/images.h"
#include "unwind/site_rule.h"
#include "unwind/unwind.h"

enum {
  CS_SITE_WAYS = 8,  // words of a line; each may contain any address of the line
  // 512 KiB. In bench/native, with 64 different stacks of 100 frames, a direct-mapped cache loses a
  // tenth of its call sites to conflicts and a frame costs 68 ns; with eight ways it loses none,
  // and a frame costs 12 ns.
  CS_SITE_WORDS = 1 << 16,
  // Interned rules. All functions of .NET 10's framework together need about 500
  // (docs/performance.md).
  CS_SITE_RULES = 4096,
  // Return addresses in collectible code: one entry for each value of the 13 address bits that are
  // not in the tag, so entry and tag together identify the address. 128 KiB.
  CS_SITE_COLLECTIBLE = 1 << 13,
  // A process with all libraries of .NET and Debian has about 5,000 native rules.
  CS_SITE_NATIVE = 8192,
};

struct cs_sites {
  _Alignas(64) uint64_t words[CS_SITE_WORDS];
  struct cs_site_rule rules[CS_SITE_RULES];
  uint8_t state[CS_SITE_RULES];  // of the rule: free, being written, valid
  // The images (cs_loader_now) for which the words are right; with any others no word is read or
  // written. Not used if images never change (world->loader is NULL).
  uint64_t loaded;
  struct {
    uint64_t site;
    uint64_t generation;  // 1 + struct cs_world.code_generation when the site was written
  } collectible[CS_SITE_COLLECTIBLE];
  // The rules of .eh_frame as sites, by their numbers, which never change their meaning.
  uint64_t native[CS_SITE_NATIVE];  // without tags; 0: unknown yet; 1: a site cannot express it
};

// A site is a word with its tag; 0 is no site. The CFA, which the next look-up waits for, is at the
// top, one shift away; the kind is at the same place as in a frame's word (walk/record.h).
//   bits 50-63 the CFA's distance from its register, in words; 0: the frame is a stack's base
//   bit  49    the frame pointer is saved at cfa - 16, as in every frame of x86-64 that is chained
//              by it
//   bits 47-48 the code's kind: CS_CODE_JIT, CS_CODE_R2R or CS_CODE_NATIVE
//   bit  46    the CFA is relative to the frame pointer, else to sp
//   bits 34-45 the rule's number
//   bits 0-33  the tag
// Where addresses have 48 bits, there is no bit 49, and all bits below are one higher.
typedef uint64_t cs_site;
enum {
  CS_SITE_IP_BITS = CS_ADDRESS_BITS,
  CS_SITE_TAG_BITS = CS_ADDRESS_BITS - 13,
  CS_SITE_RULE_AT = CS_SITE_TAG_BITS,
  CS_SITE_KIND_AT = CS_ADDRESS_BITS,
  CS_SITE_CFA_AT = 50,
};
#define CS_SITE_BY_FP (1ull << (CS_SITE_RULE_AT + 12))
#define CS_SITE_CHAINED (CS_ADDRESS_BITS == 47 ? 1ull << 49 : 0)
#define CS_SITE_KIND_BITS (3ull << CS_SITE_KIND_AT)
#define CS_SITE_KIND(site) ((enum cs_code_kind)((site) >> CS_SITE_KIND_AT & 3))
#define CS_SITE_RULE(site) ((site) >> CS_SITE_RULE_AT & (CS_SITE_RULES - 1))
#define CS_SITE_CFA(site) (((site) >> CS_SITE_CFA_AT) * 8)
#define CS_SITE_IS_BASE(site) ((site) >> CS_SITE_CFA_AT == 0)

// An odd number times 2^17, from the digits of the golden ratio: the product's upper 47 bits are a
// one-to-one mix of an address.
#define CS_SITE_MIX (0x9E3779B97F4B5ull << (64 - CS_SITE_IP_BITS))
#define CS_SITE_HASH(ip) ((ip)*CS_SITE_MIX)
// The place where an address is looked up and written first; the rest of its line comes next. The
// three bits that select the word in the line are part of the tag, too.
#define CS_SITE_PLACE(hash) ((hash) >> 48)
#define CS_SITE_TAG(hash) ((hash) >> (64 - CS_SITE_IP_BITS) & ((1ull << CS_SITE_TAG_BITS) - 1))
_Static_assert(CS_CODE_JIT == 1 && CS_CODE_R2R == 2 && CS_CODE_NATIVE == 3, "two bits");
_Static_assert(CS_SITE_WORDS == 1 << 16 && CS_SITE_WAYS == 8, "the hash's bits");

// Returns whether a walk may read and write the words. Called when it begins: what is on its stack
// stays loaded until it ends.
CS_ISLAND static inline bool cs_sites_are_for(const struct cs_sites *sites,
                                              const struct cs_world *world, uint64_t loaded) {
  return world->loader == NULL ||
         (loaded != CS_LOADER_UNSETTLED && cs_load_acquire(&sites->loaded) == loaded);
}
CS_ISLAND cs_site cs_sites_find_in_line(const struct cs_sites *sites, uint64_t hash);
CS_ISLAND static inline bool cs_site_has_tag(cs_site site, uint64_t hash) {
  return ((site ^ hash >> (64 - CS_SITE_IP_BITS)) << (64 - CS_SITE_TAG_BITS)) == 0;
}
// Returns the site of a return address of at most CS_SITE_IP_BITS (all of user space), or 0.
CS_ISLAND static inline cs_site cs_sites_find(const struct cs_sites *sites, uint64_t ip) {
  uint64_t hash = CS_SITE_HASH(ip);
  cs_site site = cs_load_acquire(&sites->words[CS_SITE_PLACE(hash)]);
  return CS_LIKELY(cs_site_has_tag(site, hash)) ? site : cs_sites_find_in_line(sites, hash);
}
// Interns the rule, and caches it for `ip`. A rule whose return address is undefined marks a
// stack's base. Returns the site, or 0 if the table is full or a site cannot express the rule; such
// a frame is decoded each time.
CS_ISLAND cs_site cs_sites_add(struct cs_sites *sites, uint64_t ip, const struct cs_cfi_rule *rule,
                               enum cs_code_kind kind);
// Returns the site of a return address in collectible code, if one was cached since code was last
// unloaded, else 0. Only for return addresses on a stack, whose code is alive.
CS_ISLAND cs_site cs_sites_find_collectible(const struct cs_world *world, uint64_t ip);
// Adds a site from the unwind data of the code that contains the return address `ip`. `near` may be
// NULL.
CS_ISLAND cs_site cs_sites_learn(const struct cs_world *world, uint64_t ip,
                                 const struct cs_code *code, struct cs_near *near);
// Clears all return addresses, but not the rules. Called before code is freed, and after the last
// walk that may have met it has ended, so that no walk adds it again. Not for handlers.
void cs_sites_forget(struct cs_sites *sites);

// Steps by a rule whose CFA is relative to a register, and whose registers are saved relative to
// the CFA. On failure `regs` are unchanged.
CS_ISLAND enum cs_stop cs_rule_apply(const struct cs_cfi_rule *rule, const struct cs_mem *mem,
                                     const struct cs_stack *stack, struct cs_regs *regs);
// The same by a site.
CS_ISLAND enum cs_stop cs_site_apply(const struct cs_sites *sites, cs_site site,
                                     const struct cs_mem *mem, const struct cs_stack *stack,
                                     struct cs_regs *regs);

// Returns the number of the rule of a native frame at a return address, or CS_NO_RULE
// (unwind/native.c).
CS_ISLAND uint16_t cs_native_rule(const struct cs_images *images, const struct cs_image *image,
                                  uint64_t ip);

// Derives the rule of a managed frame at a return address from its unwind data. Returns false if no
// rule can express it, or if `ip` is not in the body. `near` may be NULL.
CS_ISLAND bool cs_rule_of_managed(const struct cs_world *world, const struct cs_code *code,
                                  struct cs_near *near, uint64_t ip, struct cs_cfi_rule *rule);
