// SPDX-License-Identifier: MIT
// sites: how to step over the frame behind a return address that was seen before, in one cache
// line. Signal-safe: cs_sites_find, cs_sites_add, cs_rule_apply; readers and writers are handlers
// alike, wait-free: who meets a half-written entry takes it for a miss.
//
// A word of the cache has the tag of a return address (34 bits) and its site (30 bits), so it is
// read and written whole. The line of the table that it stands in is the address' other 13 bits:
// both come from a multiplication that loses nothing, so tag and line together are the address. The
// site has in itself what the next frame's look-up waits for, the CFA; the rest is in an interned
// rule, which is read beside that and not before it. Only return addresses are kept: where a frame
// was interrupted (a leaf, or under a signal) prologs and epilogs matter, and those frames decode
// their unwind data in full.
#ifndef CS_UNWIND_SITES_H
#define CS_UNWIND_SITES_H

#include "images/images.h"
#include "unwind/unwind.h"

enum {
  CS_SITE_WAYS = 8,  // words of a line: any of them may hold any address of the line
  // 512 KiB. bench/native, 64 different stacks of 100 frames: direct-mapped, a tenth of their call
  // sites push each other out and a frame costs 68 ns; with eight ways none does, and it costs 12.
  CS_SITE_WORDS = 1 << 16,
  // Interned rules. All functions of .NET 10's framework together have some 500
  // (docs/performance.md).
  CS_SITE_RULES = 4096,
  // Return addresses in code that may die: a place for each value of an address' 13 bits that the
  // tag leaves out, so that place and tag together are the address here, too. 128 KiB.
  CS_SITE_MORTALS = 1 << 13,
  // A process with all of .NET's and Debian's libraries has some 5,000 native rules.
  CS_SITE_NATIVE = 8192,
  CS_SITE_SAVED = CS_CFI_SLOTS - 1,  // registers that a frame may have saved: all but the ip
};

// What a frame has saved besides its return address, which is at cfa - 8.
struct cs_site_rule {
  int16_t saved[CS_SITE_SAVED];  // words from the CFA, in the order of CS_CFI_RBX ...; 0: not saved
  uint16_t restores;             // CS_REG_BIT()s of those that are
  uint16_t span;                 // words from the CFA down to the lowest of them
};

struct cs_sites {
  _Alignas(64) uint64_t words[CS_SITE_WORDS];
  struct cs_site_rule rules[CS_SITE_RULES];
  uint8_t state[CS_SITE_RULES];  // of the rule: free, being written, valid
  // The images (cs_loader_now) that the words are right for: with any others none is used or put
  // there. Of no meaning where nothing is loaded or unloaded (world->loader is NULL).
  uint64_t loaded;
  struct {
    uint64_t site;
    uint64_t generation;  // 1 + struct cs_world.code_generation when the site was put there
  } mortals[CS_SITE_MORTALS];
  // What the rules of .eh_frame are as sites, by their numbers, which never change their meaning.
  uint64_t native[CS_SITE_NATIVE];  // a site without its tag; 0 not known yet, 1 has no such form
};

// A site is a word with its tag: 0 is none. What the next look-up waits for, the CFA, is at the
// top, one shift away; the kind is where a frame's word has it (walk/record.h).
//   bits 50-63 the CFA's distance from its register, in words; 0: the frame is a stack's base
//   bit  49    rbp is saved at cfa - 16, as in every frame that is chained by it
//   bits 47-48 the code's kind: CS_CODE_JIT, CS_CODE_R2R or CS_CODE_NATIVE
//   bit  46    the CFA is relative to rbp, else to rsp
//   bits 34-45 the rule's number
//   bits 0-33  the tag
typedef uint64_t cs_site;
enum {
  CS_SITE_IP_BITS = 47,
  CS_SITE_TAG_BITS = 34,
  CS_SITE_RULE_AT = 34,
  CS_SITE_KIND_AT = 47,
  CS_SITE_CFA_AT = 50,
};
#define CS_SITE_BY_RBP (1ull << 46)
#define CS_SITE_CHAINED (1ull << 49)
#define CS_SITE_KIND_BITS (3ull << CS_SITE_KIND_AT)
#define CS_SITE_KIND(site) ((enum cs_code_kind)((site) >> CS_SITE_KIND_AT & 3))
#define CS_SITE_RULE(site) ((site) >> CS_SITE_RULE_AT & (CS_SITE_RULES - 1))
#define CS_SITE_CFA(site) (((site) >> CS_SITE_CFA_AT) * 8)
#define CS_SITE_IS_BASE(site) ((site) >> CS_SITE_CFA_AT == 0)

// An odd number times 2^17: the product's upper 47 bits are those of an address of 47 bits, mixed,
// and none is lost. The golden ratio's digits.
#define CS_SITE_MIX (0x9E3779B97F4B5ull << (64 - CS_SITE_IP_BITS))
#define CS_SITE_HASH(ip) ((ip)*CS_SITE_MIX)
// Where in the table an address is first looked for and put; the rest of that line comes next. The
// three bits that choose among a line's ways are the tag's, too.
#define CS_SITE_PLACE(hash) ((hash) >> 48)
#define CS_SITE_TAG(hash) ((hash) >> 17 & ((1ull << CS_SITE_TAG_BITS) - 1))
_Static_assert(CS_CODE_JIT == 1 && CS_CODE_R2R == 2 && CS_CODE_NATIVE == 3, "two bits");
_Static_assert(CS_SITE_WORDS == 1 << 16 && CS_SITE_WAYS == 8, "the hash's bits");

// May this walk use the words, and put new ones there? Asked at its beginning: what is on its stack
// stays loaded until it ends.
CS_ISLAND static inline bool cs_sites_are_for(const struct cs_sites *sites,
                                              const struct cs_world *world, uint64_t loaded) {
  return world->loader == NULL ||
         (loaded != CS_LOADER_UNSETTLED && cs_load_acquire(&sites->loaded) == loaded);
}
CS_ISLAND cs_site cs_sites_find_beside(const struct cs_sites *sites, uint64_t hash);
CS_ISLAND static inline bool cs_site_has_tag(cs_site site, uint64_t hash) {
  return ((site ^ hash >> 17) << (64 - CS_SITE_TAG_BITS)) == 0;
}
// The site of a return address of no more than 47 bits (all of user space has no more), or 0.
CS_ISLAND static inline cs_site cs_sites_find(const struct cs_sites *sites, uint64_t ip) {
  uint64_t hash = CS_SITE_HASH(ip);
  cs_site site = cs_load_acquire(&sites->words[CS_SITE_PLACE(hash)]);
  return CS_LIKELY(cs_site_has_tag(site, hash)) ? site : cs_sites_find_beside(sites, hash);
}
// Interns the rule and remembers it for `ip`; one whose return address is undefined makes it a
// stack's base. Answers the site; 0 when the table is full, or when the rule is of no form that a
// site can have: then the frame is decoded each time.
CS_ISLAND cs_site cs_sites_add(struct cs_sites *sites, uint64_t ip, const struct cs_cfi_rule *rule,
                               enum cs_code_kind kind);
// The site of a return address in code that may die, if one was learnt since the last code died; or
// 0. Only for the return addresses of a stack: the code that they are in is alive.
CS_ISLAND cs_site cs_sites_find_mortal(const struct cs_world *world, uint64_t ip);
// The same from the unwind data of the code that `ip`, a return address, is in. `near` may be NULL.
CS_ISLAND cs_site cs_sites_learn(const struct cs_world *world, uint64_t ip,
                                 const struct cs_code *code, struct cs_near *near);
// Forgets every return address (not the rules). For whoever is about to let code go: after the last
// walk that could have seen it has ended, so that none puts it back. Not for handlers.
void cs_sites_forget(struct cs_sites *sites);

// Steps by a rule whose CFA is a register's and whose registers are saved at the CFA. On failure
// `regs` are unchanged.
CS_ISLAND enum cs_stop cs_rule_apply(const struct cs_cfi_rule *rule, const struct cs_mem *mem,
                                     const struct cs_stack *stack, struct cs_regs *regs);
// The same by a site.
CS_ISLAND enum cs_stop cs_site_apply(const struct cs_sites *sites, cs_site site,
                                     const struct cs_mem *mem, const struct cs_stack *stack,
                                     struct cs_regs *regs);

// The number of the rule of a native frame at a return address, CS_NO_RULE if there is none.
// (unwind/native.c)
CS_ISLAND uint16_t cs_native_rule(const struct cs_images *images, const struct cs_image *image,
                                  uint64_t ip);

// The rule of a managed frame at a return address, from its unwind data. False: it has none of that
// form, or `ip` is not in the body. `near` may be NULL.
CS_ISLAND bool cs_rule_of_managed(const struct cs_world *world, const struct cs_code *code,
                                  struct cs_near *near, uint64_t ip, struct cs_cfi_rule *rule);

#endif
