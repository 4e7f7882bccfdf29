// SPDX-License-Identifier: MIT
// Compares the product's native unwinder with a slow twin (cfi.c, expression.c), over every FDE of
// ELF files: wherever a row of either begins or ends, at every byte where the CFA is an expression,
// and in the gaps between functions. Registers and a stack are made up at each place; the product's
// step must arrive where the twin's rules lead: CFA, return address, rbx, rbp, r12 to r15, and all
// registers under a signal. The step is made as for an interrupted frame, as for a caller's frame,
// and by its call site's rule. Every difference must have one of the reasons below, and each reason
// has a bound. Usage: ref_cfi [-v] FILE... The vdso is always included; the first file is also
// tried with spoilt rules, so it should be small. Exit code 0 pass, 1 fail. One thread.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "images/images.h"
#include "native/native.h"
#include "native/quirks.h"
#include "ref/cfi.h"
#include "ref/elf_file.h"
#include "unwind/sites.h"

// A stack in which every word has a value of its own: an aligned address on the stack, above the
// values of all registers.
#define STACK_LO 0x040000000000ull
#define STACK_HI 0x700000000000ull
#define RSP_VALUE 0x080000000000ull  // eight times that is on the stack: [rsp + r9 * 8 + 8]
enum { MAX_REPORTS = 40 };

// The reasons for which the product may differ from .eh_frame.
enum reason {
  NONE,
  CORRECTED,   // .eh_frame is wrong, by the function's own code: native/quirks.c
  DISTRUSTED,  // .eh_frame contradicts itself or the function's last ret: native/cfi_run.c
  EH_RETURN,   // the end of a function that leaves by __builtin_eh_return: native/ehreturn.c
  NOT_ABOVE,   // the CFA is not above rsp: no code can have called from there
  FORM,        // a form of rule that is not supported
  REASONS,
};
static const struct {
  const char *name;
  uint32_t most;  // functions of one file
} reasons[REASONS] = {{"", 0},          {"corrected by name", 15}, {"distrusted", 3},
                      {"eh_return", 8}, {"CFA not above rsp", 1},  {"form not supported", 0}};

static const uint8_t ours[CFI_REGISTERS] = {CS_RAX, CS_RDX, CS_RCX, CS_RBX, CS_RSI, CS_RDI,
                                            CS_RBP, CS_RSP, CS_R8,  CS_R9,  CS_R10, CS_R11,
                                            CS_R12, CS_R13, CS_R14, CS_R15, CS_RIP};
static const uint8_t callee_saved[] = {3, 6, 12, 13, 14, 15};

static const struct cs_images *images;
static struct cs_world world;
static struct cs_sites sites;
static bool verbose, quiet;

static struct counts {
  uint64_t functions, overlapped, places, gaps, startup, steps, by_site, bases, signals, wrong;
  uint64_t reason_functions[REASONS], reason_places[REASONS];
} counts, total;

// What is compared now.
static struct {
  const char *path;
  const struct elf_file *file;
  const struct cs_image *image;
  struct cs_quirk_range quirk[CS_QUIRK_MAX];
  unsigned quirks;
  const struct cfi_function *function;
  bool leaves;  // the function ends by __builtin_eh_return
  bool reported[REASONS];
} now;

static bool twin_read(uint64_t address, uint64_t *word) {
  *word = 0x300000000000u + ((address * 0x9E3779B97F4A7C15u) >> 20 & ~7ull);
  return true;
}

static bool product_read(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  (void)mem;
  uint64_t word;
  memset(dst, 0, len);  // anything but words: code bytes, which look like nothing
  if (len % sizeof word == 0)
    for (size_t at = 0; at < len && twin_read(address + at, &word); at += sizeof word)
      memcpy((uint8_t *)dst + at, &word, sizeof word);
  return true;
}

static void report(const char *what, uint64_t place) {
  static int reports;
  if (quiet || reports++ >= MAX_REPORTS) return;
  printf("%s: function at %#llx + %#llx: %s\n", now.path,
         (unsigned long long)(now.function->begin - now.file->bias),
         (unsigned long long)(place - now.function->begin), what);
}

static void wrong(const char *what, uint64_t place) {
  counts.wrong++;
  report(what, place);
}

static bool is_corrected(uint64_t place) {
  uint64_t offset = place - now.image->begin;
  for (unsigned i = 0; i < now.quirks; i++)
    if (offset >= now.quirk[i].begin && offset < now.quirk[i].end) return true;
  return false;
}

static enum reason reason_for(const struct cfi_row *row, const struct cfi_registers *from,
                              enum cs_stop stop, uint64_t cfa, uint64_t place) {
  if (is_corrected(place)) return CORRECTED;
  if (now.leaves) return EH_RETURN;
  if (stop == CS_STOP_BAD_SP && cfa <= from->r[CFI_RSP]) return NOT_ABOVE;
  if (stop != CS_STOP_NATIVE_RULE) return NONE;
  return row->cfa_is_expression || row->rule[CFI_RSP].kind != CFI_SAME ? FORM : DISTRUSTED;
}

static void give(enum reason reason, uint64_t place) {
  counts.reason_places[reason]++;
  if (now.reported[reason]) return;
  now.reported[reason] = true;
  counts.reason_functions[reason]++;
  if (!verbose || quiet) return;
  printf("%s: function at %#llx + %#llx: %s\n", now.path,
         (unsigned long long)(now.function->begin - now.file->bias),
         (unsigned long long)(place - now.function->begin), reasons[reason].name);
}

static bool is_same(const struct cs_regs *regs, const struct cfi_registers *to, bool all) {
  if (regs->r[CS_RIP] != to->r[CFI_RIP] || regs->r[CS_RSP] != to->r[CFI_RSP]) return false;
  for (unsigned i = 0; i < sizeof callee_saved; i++) {
    unsigned column = callee_saved[i], reg = ours[column];
    bool is_known = (regs->known & CS_REG_BIT(reg)) != 0;
    if (is_known == to->undefined[column]) return false;
    if (is_known && regs->r[reg] != to->r[column]) return false;
  }
  for (unsigned i = 0; all && i < CFI_REGISTERS; i++)
    if (!(regs->known & CS_REG_BIT(ours[i])) || regs->r[ours[i]] != to->r[i]) return false;
  return true;
}

// Makes up the registers of a frame, the same for the twin and the product.
static void make_up(uint64_t ip, struct cfi_registers *from, struct cs_regs *regs) {
  memset(from, 0, sizeof *from);
  for (unsigned i = 0; i < CFI_RIP; i++) from->r[i] = RSP_VALUE + 0x10000 + i * 0x1008;
  from->r[CFI_RSP] = RSP_VALUE;
  from->r[CFI_RIP] = ip;
  for (unsigned i = 0; i < CFI_REGISTERS; i++) regs->r[ours[i]] = from->r[i];
  regs->known = CS_REGS_ALL;
}

static const struct cs_stack stack = {.lo = STACK_LO, .hi = STACK_HI};

static void check_site(uint64_t place, uint64_t ip, const struct cfi_registers *to, bool is_base) {
  struct cs_code code = {.kind = CS_CODE_NATIVE, .image = now.image};
  struct cfi_registers ignored;
  struct cs_regs regs;
  cs_site site = cs_sites_learn(&world, ip, &code, NULL);
  if (site == 0) return;  // of no form that a site has: decoded each time
  counts.by_site++;
  make_up(ip, &ignored, &regs);
  if (CS_SITE_IS_BASE(site) || is_base) {
    if (!CS_SITE_IS_BASE(site) || !is_base) wrong("by its site: a base, or not", place);
    return;
  }
  enum cs_stop stop = cs_site_apply(&sites, site, &world.mem, &stack, &regs);
  if (stop != CS_STOP_NONE || !is_same(&regs, to, false)) wrong("by its site", place);
}

// Returns whether the caller resumes at exactly that ip, and not after a call: below a signal, and
// where a ucontext is restored (setcontext), which may be that of a signal.
static bool goes_on_exactly(const struct cfi_row *row) {
  return now.function->signal_frame || row->rule[CFI_RSP].kind == CFI_OFFSET;
}

// Steps from `place`, which `row` describes. If not `exact`, steps as after a call that ends at
// `place`.
static void check_step(const struct cfi_row *row, uint64_t place, bool exact) {
  struct cs_code code = {.kind = CS_CODE_NATIVE, .image = now.image};
  struct cfi_registers from, to;
  struct cs_regs regs;
  uint64_t cfa = 0, ip = exact ? place : place + 1;
  bool is_signal;
  make_up(ip, &from, &regs);
  bool has_rule = cfi_apply(row, &from, twin_read, &to, &cfa);
  enum cs_stop stop = cs_unwind_native(&world, &code, &stack, exact, &regs, &is_signal);
  counts.steps++;
  if (!has_rule) {
    wrong("the twin has no rule", place);
    return;
  }
  bool is_base = to.undefined[CFI_RIP];
  bool same = is_base ? stop == CS_STOP_BASE
                      : stop == CS_STOP_NONE && is_signal == goes_on_exactly(row) &&
                            is_same(&regs, &to, now.function->signal_frame);
  if (same) {
    counts.bases += is_base;
    counts.signals += is_signal;
    if (!exact && !is_signal) check_site(place, ip, &to, is_base);
    return;
  }
  enum reason reason = reason_for(row, &from, stop, cfa, place);
  if (reason != NONE)
    give(reason, place);
  else
    wrong(stop == CS_STOP_NONE ? "another caller" : cs_stop_token(stop), place);
}

static void check_place(const struct cfi_row *row, uint64_t place) {
  counts.places++;
  check_step(row, place, true);
  check_step(row, place, false);
}

// Returns the next place after `place` in [place, end) where a row of the product begins, or `end`.
static uint64_t next_of_product(uint64_t place, uint64_t end) {
  const struct cs_image *image = now.image;
  uint32_t lo = 0, hi = image->row_count;
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (image->begin + image->row_ip[mid] <= place)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo == image->row_count || image->begin + image->row_ip[lo] > end) return end;
  return image->begin + image->row_ip[lo];
}

static void check_row(const struct cfi_row *row, uint64_t place, uint64_t end) {
  enum { EXPRESSION_MAX = 1 << 16 };  // bytes: PLTs are 16 a function
  while (place < end) {
    uint64_t next = next_of_product(place, end);
    bool each = row->cfa_is_expression && next - place < EXPRESSION_MAX;
    for (uint64_t at = place; at < next; at += each || at + 1 >= next ? 1 : next - 1 - at)
      check_place(row, at);
    place = next;
  }
}

// Only a function that leaves by __builtin_eh_return saves rax and rdx.
static bool is_leaving(const struct cfi_function *f, uint64_t end) {
  struct cfi_row row;
  for (uint64_t place = f->begin; place < end && cfi_row_at(f, place, &row); place = row.end)
    if (row.rule[0].kind == CFI_OFFSET && row.rule[1].kind == CFI_OFFSET) return true;
  return false;
}

static void check_function(const struct cfi_function *f, uint64_t end) {
  struct cfi_row row;
  memset(now.reported, 0, sizeof now.reported);
  now.function = f;
  now.leaves = is_leaving(f, end);
  counts.functions++;
  for (uint64_t place = f->begin; place < end; place = row.end) {
    if (!cfi_row_at(f, place, &row) || f->return_register != CFI_RIP) {
      wrong("the twin cannot read it", place);
      return;
    }
    check_row(&row, place, row.end < end ? row.end : end);
  }
}

static enum cs_stop step_in_gap(uint64_t place, struct cfi_registers *from, struct cs_regs *regs) {
  struct cs_code code = {.kind = CS_CODE_NATIVE, .image = now.image};
  bool is_signal;
  make_up(place, from, regs);
  return cs_unwind_native(&world, &code, &stack, true, regs, &is_signal);
}

// sub rsp, 8; ...; add rsp, 8; ret (native/startup.c): what must be on the stack, byte by byte.
static void check_startup(uint64_t begin, uint64_t end) {
  static const uint8_t sub[] = {0x48, 0x83, 0xEC, 0x08}, add[] = {0x48, 0x83, 0xC4, 0x08, 0xC3};
  const uint8_t *code = (const uint8_t *)(uintptr_t)begin;
  uint64_t size = end - begin, first = code[0] == 0xF3 ? 4 : 0;  // endbr64
  if (size < first + 9 || memcmp(code + first, sub, sizeof sub) != 0 ||
      memcmp(code + size - sizeof add, add, sizeof add) != 0) {
    wrong("another kind of .init or .fini", begin);
    return;
  }
  for (uint64_t at = 0; at < size; at++) {
    struct cs_regs regs;
    struct cfi_registers to;
    uint64_t below = at < first + sizeof sub || at == size - 1 ? 0 : 8;
    enum cs_stop stop = step_in_gap(begin + at, &to, &regs);
    (void)twin_read(RSP_VALUE + below, &to.r[CFI_RIP]);
    to.r[CFI_RSP] = RSP_VALUE + below + 8;
    if (stop != CS_STOP_NONE || !is_same(&regs, &to, false)) wrong(".init or .fini", begin + at);
  }
  counts.startup++;
}

// Code that no FDE describes. The product handles .init and .fini nevertheless.
static void check_gap(uint64_t begin, uint64_t end) {
  struct cfi_function nobody = {.begin = begin};
  struct cs_regs regs;
  struct cfi_registers ignored;
  now.function = &nobody;
  counts.gaps++;
  for (unsigned i = 0; i < 2; i++) {
    uint64_t from = now.file->startup[i].begin, to = now.file->startup[i].end;
    if (from < begin || to > end || from == to) continue;
    check_startup(from, to);
    if (from > begin) check_gap(begin, from);
    if (to < end) check_gap(to, end);
    return;
  }
  if (step_in_gap(begin, &ignored, &regs) != CS_STOP_NO_NATIVE_RULE ||
      step_in_gap(end - 1, &ignored, &regs) != CS_STOP_NO_NATIVE_RULE)
    wrong("a rule in a gap between functions", begin);
}

struct list {
  struct cfi_function *functions;
  size_t count, capacity;
};

static void keep(const struct cfi_function *f, void *arg) {
  struct list *list = arg;
  if (f->begin < now.image->begin || f->begin >= now.image->end) return;
  if (list->count == list->capacity) {
    list->capacity = list->capacity != 0 ? list->capacity * 2 : 1024;
    list->functions = realloc(list->functions, list->capacity * sizeof *list->functions);
    if (list->functions == NULL) abort();
  }
  list->functions[list->count++] = *f;
}

static int by_begin(const void *a, const void *b) {
  const struct cfi_function *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

// Where functions overlap, the rest belongs to the one that begins later.
static void check_functions(const struct list *list) {
  uint64_t covered = now.image->begin;
  for (size_t i = 0; i < list->count; i++) {
    const struct cfi_function *f = &list->functions[i];
    uint64_t end = f->end < now.image->end ? f->end : now.image->end;
    if (f->begin > covered) check_gap(covered, f->begin);
    if (end > covered) covered = end;
    if (i + 1 < list->count && list->functions[i + 1].begin < end) {
      end = list->functions[i + 1].begin;
      counts.overlapped++;
    }
    if (end > f->begin) check_function(f, end);
  }
  if (covered < now.image->end) check_gap(covered, now.image->end);
}

static bool check_image(const struct cs_image *image) {
  struct list list = {0};
  now.image = image;
  now.quirks = 0;
  if (image->is_coreclr)
    now.quirks = cs_quirks_find((const uint8_t *)(uintptr_t)image->begin,
                                (size_t)(image->end - image->begin), now.quirk);
  bool ok = cfi_each(now.file->eh_frame, now.file->eh_frame_size, now.file->eh_frame_address, keep,
                     &list);
  if (!ok) printf("%s: its .eh_frame makes no sense to the twin\n", now.path);
  if (list.count != 0) qsort(list.functions, list.count, sizeof *list.functions, by_begin);
  check_functions(&list);
  free(list.functions);
  return ok;
}

static void add(void) {
  uint64_t *to = (uint64_t *)&total;
  const uint64_t *from = (const uint64_t *)&counts;
  for (size_t i = 0; i < sizeof total / sizeof *to; i++) to[i] += from[i];
}

static void print_counts(const char *name, const struct counts *c) {
  printf("%s: %llu functions, %llu places, %llu steps, %llu by site; %llu gaps, %llu bases", name,
         (unsigned long long)c->functions, (unsigned long long)c->places,
         (unsigned long long)c->steps, (unsigned long long)c->by_site, (unsigned long long)c->gaps,
         (unsigned long long)c->bases);
  if (c->startup != 0) printf(", %llu .init and .fini", (unsigned long long)c->startup);
  if (c->signals != 0) printf(", %llu signal frames", (unsigned long long)c->signals);
  if (c->overlapped != 0) printf(", %llu overlapped", (unsigned long long)c->overlapped);
  for (unsigned i = 1; i < REASONS; i++)
    if (c->reason_functions[i] != 0)
      printf("; %s: %llu functions, %llu steps", reasons[i].name,
             (unsigned long long)c->reason_functions[i], (unsigned long long)c->reason_places[i]);
  printf("; wrong %llu\n", (unsigned long long)c->wrong);
}

static bool check_file(const char *path, const struct elf_file *file) {
  bool ok = true;
  uint32_t compared = 0;
  memset(&counts, 0, sizeof counts);
  now.path = path;
  now.file = file;
  for (uint32_t i = 0; i < images->count; i++) {
    const struct cs_image *image = &images->image[i];
    if (image->bias != file->bias) continue;
    ok = check_image(image) && ok;
    compared++;
  }
  if (compared == 0) printf("%s: the product has no image of it\n", path);
  for (unsigned i = 1; i < REASONS; i++) {
    if (counts.reason_functions[i] <= reasons[i].most) continue;
    printf("%s: more functions than can be: %s\n", path, reasons[i].name);
    ok = false;
  }
  print_counts(path, &counts);
  add();
  return ok && compared != 0 && counts.wrong == 0 && counts.functions != 0;
}

static bool check_vdso(void) {
  struct elf_file vdso;
  const void *at = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
  for (uint32_t i = 0; i < images->count; i++) {
    const struct cs_image *image = &images->image[i];
    if (strcmp(image->path, "[vdso]") != 0) continue;
    if (elf_file_in_memory(at, (size_t)(image->end - image->begin), &vdso))
      return check_file("[vdso]", &vdso);
  }
  printf("[vdso]: cannot be read\n");
  return false;
}

// Tests the comparison: spoils each rule of a file in one of four ways, and restores it.
static bool check_itself(const char *path, const struct elf_file *file) {
  struct cs_cfi_rule *rules = (struct cs_cfi_rule *)(uintptr_t)images->rules, whole;
  uint32_t missed = 0, spoilt = 0;
  quiet = true;
  now.path = path;
  now.file = file;
  for (uint32_t i = 0; i < images->count; i++) {
    const struct cs_image *image = &images->image[i];
    if (image->bias != file->bias) continue;
    for (uint32_t row = 0; row < image->row_count; row++) {
      uint16_t id = image->row_rule[row];
      if (id == CS_NO_RULE || rules[id].cfa_how != CS_CFA_REG) continue;
      whole = rules[id];
      rules[id].cfa_off += spoilt % 4 == 0 ? 8 : 0;
      rules[id].cfa_reg ^= spoilt % 4 == 1;
      rules[id].slot[CS_CFI_RA].off -= spoilt % 4 == 2 ? 8 : 0;
      rules[id].slot[CS_CFI_R15].how ^= spoilt % 4 == 3 ? CS_CFI_UNDEFINED : 0;
      memset(&counts, 0, sizeof counts);
      (void)check_image(image);
      rules[id] = whole;
      missed += counts.wrong + counts.reason_functions[DISTRUSTED] == 0;
      spoilt++;
    }
  }
  quiet = false;
  printf("%s: %u rules spoilt, %u not noticed\n", path, spoilt, missed);
  return spoilt > 0 && missed == 0;
}

int main(int argc, char **argv) {
  bool ok = true;
  if (argc > 1 && strcmp(argv[1], "-v") == 0) {
    verbose = true;
    argc--, argv++;
  }
  struct elf_file *files = calloc((size_t)argc, sizeof *files);
  if (argc < 2 || files == NULL) {
    fprintf(stderr, "usage: ref_cfi [-v] FILE...\n");
    return 1;
  }
  for (int i = 1; i < argc; i++) {
    if (elf_file_map(argv[i], &files[i])) continue;
    printf("%s: no ELF image with an .eh_frame\n", argv[i]);
    ok = false;
  }
  struct cs_native *native = cs_native_new(0);
  images = native != NULL ? cs_native_refresh(native) : NULL;
  if (images == NULL) return 1;
  world.mem.read = product_read;
  world.images = images;
  world.sites = &sites;
  for (int i = 1; i < argc; i++)
    if (files[i].bytes != NULL) ok = check_file(argv[i], &files[i]) && ok;
  ok = check_vdso() && ok;
  if (files[1].bytes != NULL) ok = check_itself(argv[1], &files[1]) && ok;
  print_counts("all", &total);
  for (int i = 1; i < argc; i++) elf_file_close(&files[i]);
  free(files);
  cs_native_free(native);
  return ok ? 0 : 1;
}
