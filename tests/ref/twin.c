// SPDX-License-Identifier: MIT
// The product's managed unwinder against two slow twins, over every function of ReadyToRun images:
//   steps.c   what the function's own instructions do to its frame, at every instruction that is
//             reached from its entry; no unwind data is read
//   uwinfo.c  an interpreter of UNWIND_INFO that shares nothing with the product's
// At each place a frame is made up to be as steps.c says it is there, with a caller that is known;
// the product, from those registers and that stack alone, must find this caller: as an interrupted
// frame (exact) at every instruction, and as a caller's frame, decoded and by its call site's rule,
// after every call. Usage: ref_twin [--every N] IMAGE.dll...   N: one in N functions.
// Exit code 0 pass, 1 fail. One thread.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref/pe.h"
#include "ref/steps.h"
#include "ref/uwinfo.h"
#include "unwind/sites.h"

// Where everything is in the made-up process.
#define IMAGE_BASE ((uint64_t)0x7F0000000000)
#define STACK_LO 0x7E0000000000ull
#define STACK_HI 0x7E0001000000ull
#define CFA ((uint64_t)0x7E0000800000)
#define RETURN_IP 0x123456789ABCull
#define FAR_BELOW \
  ((uint64_t)0x40000)  // an rsp that has gone somewhere below the frame (stackalloc)
enum { MAX_REPORTS = 40 };

static struct ref_pe pe;
static struct cs_world world;
static struct cs_sites sites;

// The frame that is made up now.
static struct step_state state;

static uint64_t callers_value(int slot) {
  return 0xCA11E400 + (uint64_t)slot * 0x1111;
}

static uint64_t stack_word(uint64_t address) {
  if (address == CFA - 8) return RETURN_IP;
  for (int i = 0; i < STEP_SAVED; i++)
    if (state.saved[i] != 0 && address == CFA - state.saved[i]) return callers_value(i);
  return (address * 0x9E3779B97F4A7C15ull) >> 3 | 1;  // nothing's value
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
  uint64_t functions, instructions, unreached, conflicts, checked, call_sites, ruled, decoded;
  uint64_t wrong, wrong_data;
} counts;

static void make_up(struct cs_regs *regs, uint64_t ip) {
  for (unsigned i = 0; i < CS_REG_COUNT; i++) regs->r[i] = 0xDEAD0001 + i * 0x10000;
  regs->known = CS_REGS_ALL;
  for (int i = 0; i < STEP_SAVED; i++)
    if (state.own[i]) regs->r[step_register[i]] = callers_value(i);
  regs->r[CS_RSP] = CFA - (state.rsp_known ? (uint64_t)(int64_t)state.rsp_below : FAR_BELOW);
  if (state.rbp_is_frame) regs->r[CS_RBP] = CFA - (uint64_t)(int64_t)state.rbp_below;
  regs->r[CS_RIP] = ip;
}

// Checks that this is the made-up caller, except for the registers that the code has given up.
static bool is_caller(const uint64_t *r) {
  if (r[CS_RIP] != RETURN_IP || r[CS_RSP] != CFA) return false;
  for (int i = 0; i < STEP_SAVED; i++)
    if ((state.own[i] || state.saved[i] != 0) && r[step_register[i]] != callers_value(i))
      return false;
  return true;
}

static void report(const char *what, const struct ref_function *f, uint32_t offset, int stop,
                   const uint64_t *r) {
  static int reports;
  if (reports++ >= MAX_REPORTS) return;
  printf(
      "%s: function at rva %#x + %#x (stop %d): rsp cfa%+lld, rip %#llx, rbp %#llx; the frame is "
      "cfa - rsp %d%s, cfa - rbp %d%s\n",
      what, f->begin, offset, stop, (long long)(r[CS_RSP] - CFA), (unsigned long long)r[CS_RIP],
      (unsigned long long)r[CS_RBP], state.rsp_below, state.rsp_known ? "" : " (not known)",
      state.rbp_below, state.rbp_is_frame ? "" : " (not a frame)");
}

static void describe(struct cs_code *code, const struct ref_function *f) {
  *code = (struct cs_code){
      .kind = CS_CODE_R2R,
      .begin = IMAGE_BASE + f->begin,
      .end = IMAGE_BASE + f->end,
      .base = IMAGE_BASE,
      .unwind_info = IMAGE_BASE + f->unwind,
      .method_start = IMAGE_BASE + f->begin,
  };
}

static const struct cs_stack stack = {.lo = STACK_LO, .hi = STACK_HI};

static void check_step(const struct ref_function *f, uint32_t offset, bool exact) {
  struct cs_code code;
  struct cs_regs regs;
  describe(&code, f);
  make_up(&regs, code.begin + offset);
  enum cs_stop stop = cs_unwind_managed(&world, &code, &stack, exact, &regs);
  counts.checked++;
  if (stop == CS_STOP_NONE && is_caller(regs.r)) return;
  counts.wrong++;
  report(exact ? "interrupted" : "calling", f, offset, (int)stop, regs.r);
}

// After a call: decoded, by the rule of its call site, and by the other interpreter.
static void check_call(const struct ref_function *f, uint32_t offset) {
  struct cs_code code;
  struct cs_regs regs;
  struct cs_cfi_rule rule;
  struct ref_registers twin;
  check_step(f, offset, false);
  counts.call_sites++;
  describe(&code, f);
  make_up(&regs, code.begin + offset);
  memcpy(twin.r, regs.r, sizeof twin.r);
  if (!ref_unwind(&pe, f, offset, stack_word, &twin) || !is_caller(twin.r)) {
    counts.wrong_data++;
    report("unwind data", f, offset, 0, twin.r);
  }
  if (!cs_rule_of_managed(&world, &code, NULL, regs.r[CS_RIP], &rule)) {
    counts.decoded++;
    return;
  }
  cs_site site = cs_sites_add(&sites, regs.r[CS_RIP], &rule, CS_CODE_R2R);
  counts.ruled += site != 0;
  enum cs_stop stop = site != 0 ? cs_site_apply(&sites, site, &world.mem, &stack, &regs)
                                : cs_rule_apply(&rule, &world.mem, &stack, &regs);
  if (stop == CS_STOP_NONE && is_caller(regs.r)) return;
  counts.wrong++;
  report("by rule", f, offset, (int)stop, regs.r);
}

static void check_function(const struct ref_function *f) {
  static struct steps steps;
  const uint8_t *code = ref_pe_at(&pe, f->begin, f->end - f->begin);
  if (code == NULL || !steps_follow(&steps, code, f->end - f->begin)) {
    printf("function at rva %#x: its code cannot be read\n", f->begin);
    counts.wrong++;
    return;
  }
  counts.functions++;
  for (uint32_t i = 0; i < steps.count; i++) {
    const struct step_instruction *at = &steps.list[i];
    counts.instructions++;
    counts.unreached += !at->state.reached;
    counts.conflicts += at->state.reached && at->state.conflict;
    state = at->state;
    if (!state.reached || state.conflict || (!state.rsp_known && !state.rbp_is_frame)) continue;
    check_step(f, at->offset, true);
    if (at->call) check_call(f, at->offset + at->size);
  }
}

static bool check_image(const char *path, uint32_t every) {
  if (!ref_pe_open(&pe, path)) {
    printf("%s: no image that can be read\n", path);
    return false;
  }
  uint64_t before = counts.wrong + counts.wrong_data;
  for (uint32_t i = 0; i < pe.function_count; i += every) check_function(&pe.functions[i]);
  if (counts.wrong + counts.wrong_data != before) printf("  in %s\n", path);
  ref_pe_close(&pe);
  return true;
}

int main(int argc, char **argv) {
  uint32_t every = 1, images = 0;
  bool ok = true;
  world.mem.read = read_made_up;
  world.layout.runtime_function.begin = 0;
  world.layout.runtime_function.end = 4;
  world.layout.runtime_function.unwind_data = 8;
  world.layout.runtime_function.size = 12;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--every") == 0 && i + 1 < argc) {
      every = (uint32_t)strtoul(argv[++i], NULL, 10);
    } else {
      ok = check_image(argv[i], every) && ok;
      images++;
    }
  }
  if (images == 0 || every == 0) {
    fprintf(stderr, "usage: ref_twin [--every N] IMAGE.dll...\n");
    return 1;
  }
  printf(
      "%u images, %llu functions, %llu instructions: %llu not reached from an entry, %llu reached "
      "with different frames\n",
      images, (unsigned long long)counts.functions, (unsigned long long)counts.instructions,
      (unsigned long long)counts.unreached, (unsigned long long)counts.conflicts);
  printf(
      "%llu steps checked, %llu of them behind calls (%llu also by a site's rule, %llu have "
      "none)\n",
      (unsigned long long)counts.checked, (unsigned long long)counts.call_sites,
      (unsigned long long)counts.ruled, (unsigned long long)counts.decoded);
  printf("wrong: %llu by the product, %llu by the unwind data itself\n",
         (unsigned long long)counts.wrong, (unsigned long long)counts.wrong_data);
  return ok && counts.functions > 0 && counts.wrong == 0 && counts.wrong_data == 0 ? 0 : 1;
}
