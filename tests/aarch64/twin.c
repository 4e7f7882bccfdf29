// SPDX-License-Identifier: MIT
// The product's managed unwinder of arm64 against a slow twin, over every function of ReadyToRun
// images: steps.c says what the function's own instructions do to its frame, at every instruction
// that is reached from its entry, and reads no unwind data. At each place a frame is made up to be
// as it says, with a caller that is known; the product, from those registers and that stack alone,
// must find this caller: as an interrupted frame (exact) at every instruction, and as a caller's
// frame, decoded and by its call site's rule, after every call. Usage: twin [--every N]
// IMAGE.dll... N: one in N functions. Exit code 0 pass, 1 fail. One thread.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aarch64/made_up.h"
#include "codemap/reader.h"
#include "ref/pe.h"
#include "unwind/sites.h"

#define IMAGE_BASE ((uint64_t)0xFFFF00000000)

struct function {
  uint32_t begin, unwind, end;
};

static struct ref_pe pe;
static struct cs_world world;
static struct cs_sites sites;

static bool read_made_up(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  (void)mem;
  if (made_up_read(address, dst, len)) return true;
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
  made_up_regs(&regs, code.begin + at * 4, false);
  enum cs_stop stop = cs_unwind_managed(&world, &code, &made_up_stack, exact, &regs);
  counts.checked++;
  if (stop == CS_STOP_NONE && made_up_is_caller(&regs)) return;
  counts.wrong++;
  made_up_report(exact ? "interrupted" : "calling", f->begin, at, (int)stop, &regs);
}

// After a call: decoded, and by the rule of its call site.
static void check_call(const struct function *f, uint32_t at) {
  struct cs_code code = describe(f);
  struct cs_regs regs;
  struct cs_cfi_rule rule;
  check_step(f, at, false);
  counts.call_sites++;
  made_up_regs(&regs, code.begin + at * 4, false);
  if (!cs_rule_of_managed(&world, &code, NULL, regs.r[CS_IP], &rule)) {
    counts.decoded++;
    return;
  }
  cs_site site = cs_sites_add(&sites, regs.r[CS_IP], &rule, CS_CODE_R2R);
  counts.ruled += site != 0;
  enum cs_stop stop = site != 0 ? cs_site_apply(&sites, site, &world.mem, &made_up_stack, &regs)
                                : cs_rule_apply(&rule, &world.mem, &made_up_stack, &regs);
  if (stop == CS_STOP_NONE && made_up_is_caller(&regs)) return;
  counts.wrong++;
  made_up_report("by rule", f->begin, at, (int)stop, &regs);
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
    made_up_frame = steps.state[i];
    counts.instructions++;
    counts.unreached += !made_up_frame.reached;
    counts.conflicts += made_up_frame.reached && made_up_frame.conflict;
    if (!made_up_frame.reached || made_up_frame.conflict) continue;
    if (!made_up_frame.sp_known && !made_up_frame.fp_is_frame) {
      counts.unplaced++;
      continue;
    }
    check_step(f, i, true);
    // After a throw nothing need follow.
    if (!steps_is_call(code[i]) || i + 1 == steps.count) continue;
    made_up_frame.own[STEP_LR] = false;
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
