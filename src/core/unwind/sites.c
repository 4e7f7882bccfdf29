// SPDX-License-Identifier: MIT
// The call-site cache and its table of interned rules. Signal-safe: all but cs_sites_forget.
//
// Invariant: a word refers to a valid rule, and that rule is right for the code that is at the
// word's address now.
//
// The rule is valid because it is published before the word. It is right:
//   - for managed code that is never unloaded, because collectible code is not among the words;
//   - for collectible code, because it is not unloaded while it is on a walked stack, and because a
//     generation ends before its memory is used again. A site is written by a walk with that code
//     on its stack, and valid only for walks of the same generation. (The site is written before
//     the generation, and read after it, so a reader of a generation that began after the code was
//     unloaded also reads a site that was written after that.)
//   - for native code, because the words are read and written only by walks that began while the
//     images were those of the words (`loaded`), and are cleared between the last walk with the old
//     images and the first one with the new (life/images.c).
#include "unwind/sites.h"

enum { FREE, WRITING, VALID };
enum { PROBES = 16, MAX_CFA_WORDS = 0x3FFF, RULE_WORDS = sizeof(struct cs_site_rule) / 8 };
_Static_assert(sizeof(struct cs_site_rule) % 8 == 0, "compared as words");

// Compacts a rule without its CFA. Returns false if it does not fit or has another form.
CS_ISLAND static bool compact(const struct cs_cfi_rule *rule, struct cs_site_rule *out) {
  *out = (struct cs_site_rule){.span = 1};
  if (rule->cfa_how != CS_CFA_REG || rule->signal_frame ||
      (rule->cfa_reg != CS_SP && rule->cfa_reg != CS_FP) || rule->cfa_off < 8 ||
      (rule->cfa_off & 7) != 0 || rule->cfa_off / 8 > MAX_CFA_WORDS ||
      rule->slot[CS_CFI_RA].how != CS_CFI_AT_CFA ||
      (CS_SITE_RA != 0 && rule->slot[CS_CFI_RA].off != CS_SITE_RA * 8))
    return false;
  for (unsigned i = 0; i < CS_SITE_SAVED; i++) {
    int32_t off = rule->slot[i].off;
    if (rule->slot[i].how == CS_CFI_SAME) continue;
    if (rule->slot[i].how != CS_CFI_AT_CFA || off >= CS_SITE_RA * 8 || (off & 7) != 0 ||
        off / 8 < INT16_MIN)
      return false;
    out->saved[i] = (int16_t)(off / 8);
    out->restores |= (typeof(out->restores))CS_REG_BIT(cs_slot_register[i]);
    if (-(off / 8) > out->span) out->span = (uint16_t) - (off / 8);
  }
  // A frame saves registers above its sp, so what a walk reads relative to rsp needs no lower
  // bound.
  return rule->cfa_reg == CS_FP || out->span <= rule->cfa_off / 8;
}

// Returns the rule's number, or -1 if the table is full there, or another handler is writing this
// rule.
CS_ISLAND static int intern(struct cs_sites *sites, const struct cs_site_rule *rule) {
  const cs_any_u64 *words = (const cs_any_u64 *)(const void *)rule;
  uint64_t mixed = 0;
  for (unsigned i = RULE_WORDS; i-- != 0;) mixed = words[i] ^ mixed * 31;
  uint32_t at = (uint32_t)(mixed * CS_SITE_MIX >> 52);
  for (unsigned probe = 0; probe < PROBES; probe++) {
    uint32_t index = (at + probe) & (CS_SITE_RULES - 1);
    uint8_t state = cs_load_acquire(&sites->state[index]);
    if (state == FREE) {
      uint8_t expected = FREE;
      if (!cs_cas(&sites->state[index], &expected, WRITING)) return -1;
      sites->rules[index] = *rule;
      cs_store_release(&sites->state[index], VALID);
      return (int)index;
    }
    if (state != VALID) return -1;
    const cs_any_u64 *there = (const cs_any_u64 *)(const void *)&sites->rules[index];
    bool same = true;
    for (unsigned i = 0; i < RULE_WORDS; i++) same = same && there[i] == words[i];
    if (same) return (int)index;
  }
  return -1;
}

CS_ISLAND cs_site cs_sites_find_in_line(const struct cs_sites *sites, uint64_t hash) {
  uint64_t line = CS_SITE_PLACE(hash) & ~(CS_SITE_WAYS - 1ull);
  for (unsigned i = 0; i < CS_SITE_WAYS; i++) {
    cs_site site = cs_load_acquire(&sites->words[line + i]);
    if (site != 0 && cs_site_has_tag(site, hash)) return site;
  }
  return 0;
}

// Writes to the word's own place if that is free, or else to a free place in its line, or else over
// the word in its place. Two handlers may both add the same address, which does no harm: both write
// the same site.
CS_ISLAND static void put(struct cs_sites *sites, uint64_t ip, cs_site site) {
  uint64_t hash = CS_SITE_HASH(ip), place = CS_SITE_PLACE(hash);
  uint64_t line = place & ~(CS_SITE_WAYS - 1ull);
  if (ip >> CS_SITE_IP_BITS != 0) return;
  if (cs_load_relaxed(&sites->words[place]) != 0)
    for (unsigned i = 0; i < CS_SITE_WAYS; i++)
      if (cs_load_relaxed(&sites->words[line + i]) == 0) place = line + i;
  cs_store_release(&sites->words[place], CS_SITE_TAG(hash) | site);
}

enum { NOT_NOW, NO_FORM };  // neither is a site

// Returns a rule as a site without its tag; NO_FORM if a site cannot express it; NOT_NOW if the
// table is full, or another handler is writing this rule.
CS_ISLAND static cs_site site_of_rule(struct cs_sites *sites, const struct cs_cfi_rule *rule,
                                      enum cs_code_kind kind) {
  struct cs_site_rule compacted;
  cs_site site = (cs_site)kind << CS_SITE_KIND_AT;
  if (rule->slot[CS_CFI_RA].how == CS_CFI_UNDEFINED) return rule->signal_frame ? NO_FORM : site;
  if (!compact(rule, &compacted)) return NO_FORM;
  int index = intern(sites, &compacted);
  if (index < 0) return NOT_NOW;
  site |= (cs_site)index << CS_SITE_RULE_AT | (cs_site)(rule->cfa_off / 8) << CS_SITE_CFA_AT;
  if (rule->cfa_reg == CS_FP) site |= CS_SITE_BY_FP;
  if (compacted.saved[CS_CFI_FP] == -2) site |= CS_SITE_CHAINED;
  return site;
}

CS_ISLAND cs_site cs_sites_add(struct cs_sites *sites, uint64_t ip, const struct cs_cfi_rule *rule,
                               enum cs_code_kind kind) {
  cs_site site = site_of_rule(sites, rule, kind);
  if (site <= NO_FORM) return 0;
  put(sites, ip, site);
  return site;
}

CS_ISLAND static cs_site learn_native(const struct cs_world *world, uint64_t ip,
                                      const struct cs_image *image) {
  struct cs_sites *sites = world->sites;
  const struct cs_images *images = cs_load_acquire(&world->images);
  uint16_t id = images != NULL && image != NULL ? cs_native_rule(images, image, ip) : CS_NO_RULE;
  if (id >= CS_SITE_NATIVE) return 0;
  uint64_t site = cs_load_acquire(&sites->native[id]);
  if (site == NOT_NOW) {
    site = site_of_rule(sites, &images->rules[id], CS_CODE_NATIVE);
    cs_store_release(&sites->native[id], site);
  }
  if (site <= NO_FORM) return 0;
  put(sites, ip, site);
  return site;
}

CS_ISLAND static uint64_t generation_of(const struct cs_world *world) {
  return 1ull + cs_load_acquire(&world->code_generation);
}

CS_ISLAND cs_site cs_sites_find_collectible(const struct cs_world *world, uint64_t ip) {
  uint64_t hash = CS_SITE_HASH(ip), place = hash >> (64 - 13);
  if (!world->unloads_are_reported || ip >> CS_SITE_IP_BITS != 0 ||
      cs_load_acquire(&world->sites->collectible[place].generation) != generation_of(world))
    return 0;
  cs_site site = cs_load_acquire(&world->sites->collectible[place].site);
  return cs_site_has_tag(site, hash) ? site : 0;
}

// The same for code that may be replaced under a return address.
CS_ISLAND static cs_site learn_collectible(const struct cs_world *world, uint64_t ip,
                                           const struct cs_cfi_rule *rule, enum cs_code_kind kind) {
  uint64_t hash = CS_SITE_HASH(ip), place = hash >> (64 - 13), generation = generation_of(world);
  if (!world->unloads_are_reported || ip >> CS_SITE_IP_BITS != 0) return 0;
  cs_site site = site_of_rule(world->sites, rule, kind);
  if (site <= NO_FORM) return 0;
  site |= CS_SITE_TAG(hash);
  cs_store_release(&world->sites->collectible[place].site, site);
  cs_store_release(&world->sites->collectible[place].generation, generation);
  return site;
}

CS_ISLAND cs_site cs_sites_learn(const struct cs_world *world, uint64_t ip,
                                 const struct cs_code *code, struct cs_near *near) {
  struct cs_cfi_rule rule;
  if (code->kind == CS_CODE_NATIVE) return learn_native(world, ip, code->image);
  if (!cs_code_is_managed(code) || !cs_rule_of_managed(world, code, near, ip, &rule)) return 0;
  if (code->collectible) return learn_collectible(world, ip, &rule, code->kind);
  return cs_sites_add(world->sites, ip, &rule, code->kind);
}

void cs_sites_forget(struct cs_sites *sites) {
  for (uint32_t i = 0; i < CS_SITE_WORDS; i++) cs_store_relaxed(&sites->words[i], 0);
}

CS_ISLAND enum cs_stop cs_rule_apply(const struct cs_cfi_rule *rule, const struct cs_mem *mem,
                                     const struct cs_stack *stack, struct cs_regs *regs) {
  uint64_t value[CS_CFI_SLOTS];
  if (!(regs->known & CS_REG_BIT(rule->cfa_reg))) return CS_STOP_BAD_UNWIND;
  uint64_t cfa = regs->r[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_off;
  if ((cfa & 7) != 0 || cfa <= regs->r[CS_SP] || !cs_stack_holds(stack, cfa, 0))
    return CS_STOP_BAD_SP;
  for (unsigned i = 0; i < CS_CFI_SLOTS; i++)
    if (rule->slot[i].how == CS_CFI_AT_CFA &&
        !cs_stack_u64(mem, stack, cfa + (uint64_t)(int64_t)rule->slot[i].off, &value[i]))
      return CS_STOP_BAD_SP;
  for (unsigned i = 0; i < CS_CFI_SLOTS; i++) {
    if (rule->slot[i].how != CS_CFI_AT_CFA) continue;
    regs->r[cs_slot_register[i]] = value[i];
    regs->known |= CS_REG_BIT(cs_slot_register[i]);
  }
  regs->r[CS_IP] = cs_ip_of(regs->r[CS_IP]);
  regs->r[CS_SP] = cfa;
  regs->known &= CS_REGS_PRESERVED;
  return CS_STOP_NONE;
}

CS_ISLAND enum cs_stop cs_site_apply(const struct cs_sites *sites, cs_site site,
                                     const struct cs_mem *mem, const struct cs_stack *stack,
                                     struct cs_regs *regs) {
  const struct cs_site_rule *compacted = &sites->rules[CS_SITE_RULE(site)];
  struct cs_cfi_rule rule = {.cfa_how = CS_CFA_REG,
                             .cfa_reg = site & CS_SITE_BY_FP ? CS_FP : CS_SP,
                             .cfa_off = (int32_t)CS_SITE_CFA(site)};
  for (unsigned i = 0; i < CS_SITE_SAVED; i++) {
    if (compacted->saved[i] == 0) continue;
    rule.slot[i].how = CS_CFI_AT_CFA;
    rule.slot[i].off = compacted->saved[i] * 8;
  }
  if (CS_SITE_RA != 0) {
    rule.slot[CS_CFI_RA].how = CS_CFI_AT_CFA;
    rule.slot[CS_CFI_RA].off = CS_SITE_RA * 8;
  }
  return cs_rule_apply(&rule, mem, stack, regs);
}
