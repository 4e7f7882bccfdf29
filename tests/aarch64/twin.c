// SPDX-License-Identifier: MIT
// The product's managed unwinder of arm64 against a slow twin, over every function of ReadyToRun
// images: steps.c says what the function's own instructions do to its frame, at every instruction
// that is reached from its entry, and reads no unwind data. At each place a frame is made up to be
// as it says, with a caller that is known; the product, from those registers and that stack alone,
// must find this caller: as an interrupted frame (exact) at every instruction, and as a caller's
// frame, decoded and by its call site's rule, after every call. Usage: twin [--every N] IMAGE.dll...
// N: one in N functions. Exit code 0 pass, 1 fail. One thread.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aarch64/steps.h"
#include "codemap/reader.h"
#include "ref/pe.h"
#include "unwind/sites.h"

// Where everything is in the made-up process.
#define IMAGE_BASE ((uint64_t)0xFFFF00000000)
#define STACK_LO 0xFFFFF0000000ull
#define STACK_HI 0xFFFFF1000000ull
#define CFA ((uint64_t)0xFFFFF0800000)
#define RETURN_IP 0xF23456789AB0ull
#define FAR_BELOW ((uint64_t)0x40000)  // an sp that has gone somewhere below the frame (localloc)
enum { MAX_REPORTS = 40 };

struct function {
  uint32_t begin, unwind, end;
};

static struct ref_pe pe;
static struct cs_world world;
static struct cs_sites sites;
static struct step_state state;  // the frame that is made up now
static const struct cs_stack stack = {.lo = STACK_LO, .hi = STACK_HI};

static uint64_t callers_value(int slot) {
  return slot == STEP_LR ? RETURN_IP : 0xCA11E400 + (uint64_t)slot * 0x1110;
}

static uint64_t stack_word(uint64_t address) {
  for (int i = 0; i < STEP_SAVED; i++)
    if (state.saved[i] != 0 && address == CFA - (uint64_t)(int64_t)state.saved[i])
      return callers_value(i);
  return (address * 0x9E3779B97F4A7C15ull) >> 17 | 1;  // nothing's value
}

static bool read_made_up(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  (void)mem;
  if (address >= STACK_LO && address < STACK_HI) {
    if (len != 8 || (address & 7) != 0) return false;
    uint64_t value = stack_word(address);
    memcpy(dst, &value, sizeof value);
    return true;
  }
  if (address < IMAGE_BASE || address - IMAGE_BASE > UINT32_MAX) return false;
  const uint8_t *from = ref_pe_at(&pe, (uint32_t)(address - IMAGE_BASE), (uint32_t)len);
  if (from == NULL) return false;
  memcpy(dst, from, len);
  return true;
}

static struct counts {
  uint64_t functions, instructions, unreached, conflicts, unplaced, checked, call_sites, ruled,
      decoded, wrong;
} counts;

static void make_up(struct cs_regs *regs, uint64_t ip) {
  for (unsigned i = 0; i < CS_REG_COUNT; i++) regs->r[i] = 0xDEAD0001 + i * 0x10000;
  regs->known = CS_REGS_ALL;
  for (int i = 0; i < STEP_SAVED; i++)
    if (state.own[i]) regs->r[STEP_FIRST + i] = callers_value(i);
  regs->r[CS_SP] = CFA - (state.sp_known ? (uint64_t)(int64_t)state.sp_below : FAR_BELOW);
  if (state.fp_is_frame) regs->r[CS_FP] = CFA - (uint64_t)(int64_t)state.fp_below;
  regs->r[CS_IP] = ip;
}

// Checks that this is the made-up caller, except for the registers that the code has given up.
static bool is_caller(const struct cs_regs *regs) {
  if (regs->r[CS_IP] != RETURN_IP || regs->r[CS_SP] != CFA) return false;
  for (int i = 0; i < STEP_LR; i++)
    if ((state.own[i] || state.saved[i] != 0) && regs->r[STEP_FIRST + i] != callers_value(i))
      return false;
  return true;
}

static void report(const char *what, const struct function *f, uint32_t at, int stop,
                   const struct cs_regs *regs) {
  static int reports;
  if (reports++ >= MAX_REPORTS) return;
  printf(
      "%s: function at rva %#x + %#x (stop %d): sp cfa%+lld, ip %#llx, fp %#llx; the frame is "
      "cfa - sp %d%s, cfa - fp %d%s\n",
      what, f->begin, at * 4, stop, (long long)(regs->r[CS_SP] - CFA),
      (unsigned long long)regs->r[CS_IP], (unsigned long long)regs->r[CS_FP], state.sp_below,
      state.sp_known ? "" : " (not known)", state.fp_below,
      state.fp_is_frame ? "" : " (not a frame)");
}

static struct cs_code describe(const struct function *f) {
  return (struct cs_code){
      .kind = CS_CODE_R2R,
      .begin = IMAGE_BASE + f->begin,
      .end = IMAGE_BASE + f->end,
      .base = IMAGE_BASE,
      .unwind_info = IMAGE_BASE + f->unwind,
      .method_start = IMAGE_BASE + f->begin,
  };
}

static void check_step(const struct function *f, uint32_t at, bool exact) {
  struct cs_code code = describe(f);
  struct cs_regs regs;
  make_up(&regs, code.begin + at * 4);
  enum cs_stop stop = cs_unwind_managed(&world, &code, &stack, exact, &regs);
  counts.checked++;
  if (stop == CS_STOP_NONE && is_caller(&regs)) return;
  counts.wrong++;
  report(exact ? "interrupted" : "calling", f, at, (int)stop, &regs);
}

// After a call: decoded, and by the rule of its call site.
static void check_call(const struct function *f, uint32_t at) {
  struct cs_code code = describe(f);
  struct cs_regs regs;
  struct cs_cfi_rule rule;
  check_step(f, at, false);
  counts.call_sites++;
  make_up(&regs, code.begin + at * 4);
  if (!cs_rule_of_managed(&world, &code, NULL, regs.r[CS_IP], &rule)) {
    counts.decoded++;
    return;
  }
  cs_site site = cs_sites_add(&sites, regs.r[CS_IP], &rule, CS_CODE_R2R);
  counts.ruled += site != 0;
  enum cs_stop stop = site != 0 ? cs_site_apply(&sites, site, &world.mem, &stack, &regs)
                                : cs_rule_apply(&rule, &world.mem, &stack, &regs);
  if (stop == CS_STOP_NONE && is_caller(&regs)) return;
  counts.wrong++;
  report("by rule", f, at, (int)stop, &regs);
}

static void check_function(const struct function *f) {
  static struct steps steps;
  uint32_t size = f->end - f->begin;
  const uint32_t *code = (const void *)ref_pe_at(&pe, f->begin, size);
  if (code == NULL || f->end <= f->begin || !steps_follow(&steps, code, size / 4)) {
    printf("function at rva %#x: its code cannot be read\n", f->begin);
    counts.wrong++;
    return;
  }
  counts.functions++;
  for (uint32_t i = 0; i < steps.count; i++) {
    state = steps.state[i];
    counts.instructions++;
    counts.unreached += !state.reached;
    counts.conflicts += state.reached && state.conflict;
    if (!state.reached || state.conflict) continue;
    if (!state.sp_known && !state.fp_is_frame) {
      counts.unplaced++;
      continue;
    }
    check_step(f, i, true);
    // After a throw nothing need follow.
    if (!steps_is_call(code[i]) || i + 1 == steps.count) continue;
    state.own[STEP_LR] = false;
    check_call(f, i + 1);
  }
}

static bool check_image(const char *path, uint32_t every) {
  struct cs_reader reader = {.mem = &world.mem};
  if (!ref_pe_open(&pe, path) || pe.table_size < 8) {
    printf("%s: no ReadyToRun image that can be read\n", path);
    return false;
  }
  const uint32_t *table = (const void *)pe.functions;
  uint64_t before = counts.wrong;
  for (uint32_t i = 0; i < pe.table_size / 8; i += every) {
    struct function f = {table[2 * i], table[2 * i + 1], 0};
    if (f.begin == UINT32_MAX) continue;  // the end of the table
    if (!cs_get_function_end(&reader, &world.layout, &table[2 * i], IMAGE_BASE, &f.end))
      return false;
    check_function(&f);
  }
  if (counts.wrong != before) printf("  in %s\n", path);
  ref_pe_close(&pe);
  return true;
}

int main(int argc, char **argv) {
  uint32_t every = 1, images = 0;
  bool ok = true;
  world.mem.read = read_made_up;
  world.layout.runtime_function.unwind_data = 4;
  world.layout.runtime_function.size = 8;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--every") == 0 && i + 1 < argc) {
      every = (uint32_t)strtoul(argv[++i], NULL, 10);
    } else {
      ok = every != 0 && check_image(argv[i], every) && ok;
      images++;
    }
  }
  if (images == 0 || every == 0) {
    fprintf(stderr, "usage: twin [--every N] IMAGE.dll...\n");
    return 1;
  }
  printf(
      "%u images, %llu functions, %llu instructions: %llu not reached from an entry, %llu reached "
      "with different frames, %llu whose frame is at no known place\n",
      images, (unsigned long long)counts.functions, (unsigned long long)counts.instructions,
      (unsigned long long)counts.unreached, (unsigned long long)counts.conflicts,
      (unsigned long long)counts.unplaced);
  printf(
      "%llu steps checked, %llu of them after calls (%llu also by a site's rule, %llu have none)\n",
      (unsigned long long)counts.checked, (unsigned long long)counts.call_sites,
      (unsigned long long)counts.ruled, (unsigned long long)counts.decoded);
  printf("wrong: %llu\n", (unsigned long long)counts.wrong);
  // Few places escape the check, or it would show little.
  return ok && counts.functions > 0 && counts.wrong == 0 &&
                 counts.unplaced * 1000 <= counts.instructions &&
                 counts.conflicts * 1000 <= counts.instructions
             ? 0
             : 1;
}
