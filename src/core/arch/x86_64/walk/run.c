// SPDX-License-Identifier: MIT
// The fast path over frames whose call sites are cached: for each frame, one word of the cache, one
// interned rule, and the stack words that the frame has saved. Signal-safe: yes. Reads the cache,
// which is never freed, and the stack within its bounds.
//
// Invariant: a step is made only if the cache has both ends of it: the frame's own site, and that
// of the return address that it leads to (which may just have been added). So the run ends before a
// step to OnHijackTripThread (which is not a return address), over a stack's base, or over code
// whose rule a site cannot express; cs_walk_next makes that step. The chain of dependent loads is
// kept short: stack word, cache word, CFA, stack word.
#include "codemap/collectible.h"
#include "unwind/ahead.h"
#include "unwind/sites.h"
#include "walk/again.h"

// A run's registers must stay in processor registers, so its address is never taken.
#define INLINED inline __attribute__((always_inline))

struct run {
  uint64_t ip, sp, rbp;
  uint64_t saved[CS_SITE_SAVED];  // in the order of CS_CFI_RBX ...
  uint32_t known;
  int16_t rbp_at;  // where the last step has read rbp, in words from sp; 0: nowhere
  cs_site site;
};

static const uint8_t slot_register[CS_SITE_SAVED] = {CS_RBX, CS_RBP, CS_R12,
                                                     CS_R13, CS_R14, CS_R15};

CS_ISLAND static inline uint64_t word_at(uint64_t addr) {
  return *(const volatile cs_any_u64 *)(uintptr_t)addr;
}

// Returns a register's value in the caller: saved `words` from the CFA, or unchanged. Without a
// branch, since it cannot be predicted which frames save which registers. The place of the return
// address can always be read.
CS_ISLAND static inline uint64_t restored(uint64_t cfa, int64_t words, uint64_t current) {
  uint64_t there = word_at(cfa + (uint64_t)((words != 0 ? words : -1) * 8));
  return words != 0 ? there : current;
}

// Returns `value`, but taken from `guess` if both are equal, so that the processor can go on with
// the guess before `value` is known. The asm statements keep the compiler from seeing that they are
// equal.
CS_ISLAND static inline uint64_t predicted(uint64_t value, uint64_t guess) {
  uint64_t taken = guess;
  __asm__ volatile("" : "+r"(guess));
  __asm__ volatile("" : "+r"(taken));
  if (value == guess) {
    value = taken;
    __asm__ volatile("" : "+r"(value));  // a branch, not a conditional move
  }
  return value;
}

// Finds the site of a return address that is not in the cache of permanent code. The address was
// found by a site, and sites are never wrong, so it is a return address. If its code has to be
// looked up, *code receives it. `fp`: a frame pointer, or 0; never below the walk's sp.
CS_ISLAND static __attribute__((noinline)) cs_site learn(const struct cs_world *world, uint64_t ip,
                                                         const struct cs_stack *stack, uint64_t fp,
                                                         struct cs_near *near,
                                                         struct cs_code *code) {
  bool is_near = ip > near->begin && ip < near->end;  // what is near is not collectible
  cs_site site = is_near ? 0 : cs_sites_find_collectible(world, ip);
  if (site != 0) return site;
  if (near->check_at != 0 && cs_tsc() >= near->check_at) return 0;  // cs_walk_next checks the time
  if (near->end != 0 && fp >= near->prefetched) cs_prefetch_ahead(world, near, stack, fp);
  if (cs_collectible_find(near, ip) != NULL) return 0;
  if (ip == 0 || cs_codemap_find_near(world, ip - 1, near, code) != CS_STOP_NONE) return 0;
  return cs_sites_learn(world, ip, code, near);
}

// Makes one step, if it is that simple. `all`: every register is followed; otherwise only those
// that sites need, and rbp must be known.
CS_ISLAND static INLINED bool step(struct run *run, const struct cs_world *world,
                                   const struct cs_sites *sites, const struct cs_stack *stack,
                                   struct cs_near *near, struct cs_code *code, bool all) {
  cs_site site = run->site;
  uint64_t cfa = run->sp + CS_SITE_CFA(site);
  const struct cs_site_rule *rule = &sites->rules[CS_SITE_RULE(site)];
  if (site & CS_SITE_BY_FP) {
    cfa = run->rbp + CS_SITE_CFA(site);
    if (cfa <= run->sp || (cfa & 7) != 0 || cfa - stack->lo < rule->span * 8u ||
        (all && !(run->known & CS_REG_BIT(CS_RBP))))
      return false;
  }
  cfa = predicted(cfa, run->rbp + 16);
  if (cfa > stack->hi || CS_SITE_IS_BASE(site)) return false;
  uint64_t ip = word_at(cfa - 8);
  cs_site next = cs_sites_find(sites, ip);
  if (CS_UNLIKELY(ip >> CS_SITE_IP_BITS != 0)) return false;
  if (CS_UNLIKELY(next == 0)) {
    uint64_t fp = run->rbp >= run->sp ? run->rbp : 0;
    if ((next = learn(world, ip, stack, fp, near, code)) == 0) return false;
  }
  run->rbp_at = site & CS_SITE_CHAINED ? -2 : rule->saved[CS_CFI_RBP];
  if (site & CS_SITE_CHAINED)
    run->rbp = word_at(cfa - 16);
  else
    run->rbp = restored(cfa, rule->saved[CS_CFI_RBP], run->rbp);
  if (all) {
#pragma GCC unroll 6
    for (unsigned i = 0; i < CS_SITE_SAVED; i++)
      if (i != CS_CFI_RBP) run->saved[i] = restored(cfa, rule->saved[i], run->saved[i]);
    run->saved[CS_CFI_RBP] = run->rbp;
    run->known |= rule->restores;
  }
  run->ip = ip;
  run->sp = cfa;
  run->site = next;
  return true;
}

CS_ISLAND static inline void write_rest(struct cs_record *out, const struct run *run,
                                        uint32_t known) {
  out->preserved[CS_PRESERVED_SP] = run->sp;
  out->preserved[CS_PRESERVED_RBP] = run->rbp;
  out->preserved[CS_PRESERVED_IP] = run->ip;
  out->function_id = out->method_start = out->call_ip = 0;
  out->known = known;
  out->kind = (uint8_t)CS_SITE_KIND(run->site);
  out->flags = 0;
  out->funclet = out->collectible = out->may_be_gone = out->resolved = out->dynamic = false;
  out->eh = 0;
  out->deaths = 0;
  out->fp_at = run->rbp_at;
}

CS_ISLAND static inline void write_record(struct cs_record *out, const struct run *run) {
  static const uint8_t at[CS_SITE_SAVED] = {CS_PRESERVED_RBX, CS_PRESERVED_RBP, CS_PRESERVED_R12,
                                            CS_PRESERVED_R13, CS_PRESERVED_R14, CS_PRESERVED_R15};
#pragma GCC unroll 6
  for (unsigned i = 0; i < CS_SITE_SAVED; i++) out->preserved[at[i]] = run->saved[i];
  write_rest(out, run, run->known);
}

CS_ISLAND static inline void write_plain(struct cs_record *out, const struct run *run) {
  static const uint8_t at[] = {CS_PRESERVED_RBX, CS_PRESERVED_R12, CS_PRESERVED_R13,
                               CS_PRESERVED_R14, CS_PRESERVED_R15};
#pragma GCC unroll 5
  for (unsigned i = 0; i < CS_COUNT(at); i++) out->preserved[at[i]] = 0;
  write_rest(out, run, CS_REG_BIT(CS_RSP) | CS_REG_BIT(CS_RBP) | CS_REG_BIT(CS_RIP));
}

// Adds the code to a record, if it has just been looked up.
CS_ISLAND static inline void write_code(struct cs_record *out, struct cs_code *code) {
  if (CS_LIKELY(code->kind == CS_CODE_NONE)) return;
  if (cs_code_is_managed(code)) {
    out->function_id = code->function_id;
    out->method_start = code->method_start;
    out->funclet = code->funclet;
    out->collectible = code->collectible;
    __builtin_prefetch((const void *)(uintptr_t)code->function_id);
  }
  code->kind = CS_CODE_NONE;
}

CS_ISLAND static INLINED bool start(struct run *run, const struct cs_walk *walk) {
  const struct cs_mem *mem = &walk->world->mem;
  if (mem->read != NULL && !mem->stack_in_place) return false;  // the stack is read by plain loads
  if (walk->site == 0 || (walk->regs.r[CS_RSP] & 7) != 0 || walk->regs.r[CS_RSP] < walk->stack.lo ||
      walk->regs.r[CS_RSP] >= walk->stack.hi)
    return false;
  run->ip = walk->regs.r[CS_RIP];
  run->sp = walk->regs.r[CS_RSP];
  run->rbp = walk->regs.r[CS_RBP];
  for (unsigned i = 0; i < CS_SITE_SAVED; i++) run->saved[i] = walk->regs.r[slot_register[i]];
  run->known = walk->regs.known;
  run->rbp_at = 0;
  run->site = walk->site;
  return true;
}

CS_ISLAND static INLINED uint32_t finish(const struct run *run, struct cs_walk *walk,
                                         uint32_t count) {
  if (count == 0) return 0;
  for (unsigned i = 0; i < CS_SITE_SAVED; i++) walk->regs.r[slot_register[i]] = run->saved[i];
  walk->regs.r[CS_RBP] = run->rbp;
  walk->regs.r[CS_RIP] = run->ip;
  walk->regs.r[CS_RSP] = run->sp;
  walk->regs.known = run->known & CS_REGS_PRESERVED;
  walk->code.kind = CS_SITE_KIND(run->site);
  walk->site = run->site;
  walk->flags = 0;
  walk->depth += count;
  return count;
}

// A walk with a limit checks the time between two runs, so each of these takes 50 us at most.
CS_ISLAND static uint32_t limited_room(const struct cs_walk *walk, uint32_t room) {
  enum { UNTIMED = 4096 };
  uint32_t left = walk->max_depth - walk->depth;
  if (walk->limit_ns != 0 && left > UNTIMED) left = UNTIMED;
  return room < left ? room : left;
}

CS_ISLAND uint32_t cs_walk_run(struct cs_walk *walk, struct cs_record *out, uint32_t room) {
  const struct cs_sites *sites = walk->world->sites;
  struct cs_stack stack = walk->stack;
  struct cs_code code = {.kind = CS_CODE_NONE};
  struct run run;
  uint32_t count = 0;
  if (!start(&run, walk)) return 0;
  room = limited_room(walk, room);
  while (count < room && step(&run, walk->world, sites, &stack, &walk->near, &code, true)) {
    write_record(&out[count], &run);
    write_code(&out[count++], &code);
  }
  return finish(&run, walk, count);
}

CS_ISLAND uint32_t cs_walk_skip(struct cs_walk *walk, uint32_t frames) {
  const struct cs_sites *sites = walk->world->sites;
  struct cs_stack stack = walk->stack;
  struct cs_code code = {.kind = CS_CODE_NONE};
  struct run run;
  uint32_t count = 0;
  if (!start(&run, walk)) return 0;
  frames = limited_room(walk, frames);
  while (count < frames && step(&run, walk->world, sites, &stack, &walk->near, &code, true))
    count++;
  return finish(&run, walk, count);
}

_Static_assert((int)CS_SITE_KIND_AT == (int)CS_FRAME_WORD_KIND_AT, "a site's kind is the word's");

// The registers of these frames are not needed, so those that no site uses are not followed. If the
// walk must continue by other means than sites, they are followed in a second pass; most runs end
// at the base.
CS_ISLAND static INLINED uint32_t run_plain(struct cs_walk *walk, struct cs_record *records,
                                            uint64_t *words, uint32_t room) {
  const struct cs_sites *sites = walk->world->sites;
  struct cs_stack stack = walk->stack;
  struct cs_code code = {.kind = CS_CODE_NONE};
  struct run run;
  uint32_t count = 0;
  if (!start(&run, walk) || !(run.known & CS_REG_BIT(CS_RBP))) return 0;
  room = limited_room(walk, room);
  struct cs_again_search *search = words == NULL ? walk->again : NULL;
  uint64_t until = search != NULL && search->again != NULL ? 0 : ~0ull;  // sp that may match
  while (count < room && step(&run, walk->world, sites, &stack, &walk->near, &code, false)) {
    if (words != NULL) {
      words[count++] = run.ip | (run.site & CS_SITE_KIND_BITS);
      continue;
    }
    write_plain(&records[count], &run);
    write_code(&records[count++], &code);
    if (CS_LIKELY(run.sp < until)) continue;
    until = cs_again_match(search, run.ip, run.sp, run.rbp, search->before + count - 1);
    if (until == 0) break;  // the walk is over
  }
  if (count != 0 && !CS_SITE_IS_BASE(run.site) && until != 0) {
    uint32_t again = 0;
    (void)start(&run, walk);
    while (again < count && step(&run, walk->world, sites, &stack, &walk->near, &code, true))
      again++;
  }
  return finish(&run, walk, count);
}

CS_ISLAND uint32_t cs_walk_run_plain(struct cs_walk *walk, struct cs_record *out, uint32_t room) {
  return run_plain(walk, out, NULL, room);
}

CS_ISLAND uint32_t cs_walk_run_words(struct cs_walk *walk, uint64_t *out, uint32_t room) {
  return run_plain(walk, NULL, out, room);
}
