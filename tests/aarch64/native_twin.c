// SPDX-License-Identifier: MIT
// The product's native unwind rows of arm64, the runtime's corrected ones among them, against a
// slow twin, over every function of ELF files: steps.c says what the function's own instructions do
// to its frame, and reads no unwind data. At each place a frame is made up to be as it says
// (made_up.h); the product must find its caller: as an interrupted frame at every instruction that
// is reached from the entry, and as a caller's frame after every call. Usage: native_twin
// [--uncorrected] FILE...: without the corrections there must be more that is wrong. Exit code 0
// pass, 1 fail. One thread.
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aarch64/made_up.h"
#include "native/cfi.h"
#include "native/ehreturn.h"
#include "native/quirks.h"

static struct cs_rules rules;
static struct cs_world world;
static struct {
  struct cs_images head;
  struct cs_image image;
} table = {.head.count = 1};
static const uint8_t *file;
static bool uncorrected;
static uint64_t file_size, text_offset;  // of the executable segment

static struct counts {
  uint64_t functions, parts, instructions, unreached, conflicts, unplaced, checked, calls, special,
      refused, corrected, wrong, wrong_functions;
} counts;

// Functions of CoreCLR 10.0.9 that clang describes wrongly where a block with a prolog of its own
// lies between others, and one in assembly (docs/oracles.md).
enum { KNOWN_FUNCTIONS = 6, KNOWN_PLACES = 210 };

static bool read_made_up(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  const struct cs_image *image = &table.image;
  (void)mem;
  if (made_up_read(address, dst, len)) return true;
  if (address < image->begin || address + len > image->end) return false;
  memcpy(dst, file + text_offset + (address - image->begin), len);
  return true;
}

static const Elf64_Shdr *section(const char *name) {
  const Elf64_Ehdr *head = (const void *)file;
  const Elf64_Shdr *sections = (const void *)(file + head->e_shoff);
  const char *names = (const char *)file + sections[head->e_shstrndx].sh_offset;
  for (unsigned i = 0; i < head->e_shnum; i++)
    if (strcmp(names + sections[i].sh_name, name) == 0) return &sections[i];
  return NULL;
}

static bool map_file(const char *path) {
  struct stat status;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &status) != 0) return false;
  file_size = (uint64_t)status.st_size;
  void *map = mmap(NULL, file_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  file = map;
  const Elf64_Ehdr *head = map;
  if (map == MAP_FAILED || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return false;
  const Elf64_Phdr *segments = (const void *)(file + head->e_phoff);
  for (unsigned i = 0; i < head->e_phnum; i++) {
    if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_X)) continue;
    table.image.begin = segments[i].p_vaddr;
    table.image.end = segments[i].p_vaddr + segments[i].p_filesz;
    text_offset = segments[i].p_offset;
    return true;
  }
  return false;
}

static bool is_runtime(void) {
  static const char descriptor[] = "DotNetRuntimeContractDescriptor";
  const Elf64_Shdr *names = section(".dynstr");
  return names != NULL &&
         memmem(file + names->sh_offset, names->sh_size, descriptor, sizeof descriptor) != NULL;
}

// Compiles the rows as the product does. They have one block.
static bool compile(const char *path, struct cs_rows *rows) {
  static const uint32_t block_row[1];
  const Elf64_Shdr *frames = section(".eh_frame"), *hdr = section(".eh_frame_hdr");
  struct cs_cfi_stats stats = {0};
  struct cs_error err = {.text = ""};
  struct cs_image *image = &table.image;
  if (frames == NULL || hdr == NULL) return false;
  struct cs_cfi_section in = {.bytes = file + frames->sh_offset,
                              .size = frames->sh_size,
                              .address = frames->sh_addr,
                              .data_base = hdr->sh_addr};
  cs_rows_free(rows);
  memset(rows, 0, sizeof *rows);
  if (cs_cfi_compile(&in, image->begin, image->end, &rules, rows, &stats, &err) != CS_CFI_OK ||
      !cs_ehreturn_apply(NULL, image->begin, &stats, &rules, rows)) {
    printf("%s: %s\n", path, err.text);
    return false;
  }
  if (is_runtime() && !uncorrected) {
    unsigned found;
    const uint8_t *text = file + text_offset;
    if (!cs_quirks_apply(text, image->end - image->begin, &rules, rows, &found)) return false;
    printf("%s is a runtime: %u of %u functions with wrong unwind data are found by their code\n",
           path, found, (unsigned)CS_QUIRKS);
    counts.corrected++;
    if (found != CS_QUIRKS) counts.wrong++;
  }
  image->path = path;
  image->row_ip = rows->ip;
  image->row_rule = rows->rule;
  image->row_count = rows->count;
  image->block_row = block_row;
  image->block_count = 1;
  image->block_bits = 31;
  table.head.rules = rules.rule;
  return true;
}

static const struct cs_cfi_rule *rule_at(uint64_t ip) {
  uint32_t lo = 0, hi = table.image.row_count, offset = (uint32_t)(ip - table.image.begin);
  while (hi - lo > 1) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (table.image.row_ip[mid] <= offset)
      lo = mid;
    else
      hi = mid;
  }
  uint16_t rule = table.image.row_rule[lo];
  return rule == CS_NO_RULE ? NULL : &rules.rule[rule];
}

// Rules that lead elsewhere than to the caller.
static bool is_special(const struct cs_cfi_rule *rule) {
  return rule != NULL && (rule->cfa_how == CS_CFA_CONTEXT || rule->cfa_how == CS_CFA_FAULT ||
                          rule->cfa_how == CS_CFA_RESUME || rule->cfa_how == CS_CFA_JUMP ||
                          rule->signal_frame || rule->slot[CS_CFI_RA].how == CS_CFI_UNDEFINED);
}

static void check_step(uint64_t begin, uint32_t at, bool exact) {
  struct cs_code code = {.kind = CS_CODE_NATIVE, .image = &table.image};
  struct cs_regs regs;
  bool signal_frame = false;
  made_up_regs(&regs, begin + at * 4, true);
  enum cs_stop stop = cs_unwind_native(&world, &code, &made_up_stack, exact, &regs, &signal_frame);
  counts.checked++;
  counts.calls += !exact;
  if (stop == CS_STOP_NONE && !signal_frame && made_up_is_caller(&regs)) return;
  if (is_special(rule_at(begin + at * 4 - (exact ? 0 : 1)))) {
    counts.special++;
  } else if (stop == CS_STOP_NATIVE_RULE || stop == CS_STOP_NO_NATIVE_RULE) {
    counts.refused++;
  } else {
    counts.wrong++;
    made_up_report(exact ? "interrupted" : "calling", begin, at, (int)stop, &regs);
  }
}

static void check_function(uint64_t begin, uint64_t end) {
  static struct steps steps;
  const struct cs_image *image = &table.image;
  const struct cs_cfi_rule *first = rule_at(begin);
  if (begin < image->begin || end > image->end || end <= begin || begin % 4 != 0) return;
  // A part of a function that is reached by jumps has a frame from its first instruction on.
  if (first == NULL || first->cfa_how != CS_CFA_REG || first->cfa_reg != CS_SP ||
      first->cfa_off != 0) {
    counts.parts++;
    return;
  }
  const uint32_t *code = (const void *)(file + text_offset + (begin - image->begin));
  if (!steps_follow(&steps, code, (uint32_t)((end - begin) / 4))) abort();
  uint64_t wrong = counts.wrong;
  counts.functions++;
  for (uint32_t i = 0; i < steps.count; i++) {
    const struct step_state *state = &steps.state[i];
    counts.instructions++;
    counts.unreached += !state->reached;
    counts.conflicts += state->reached && state->conflict;
    if (!state->reached || state->conflict) continue;
    if (!state->sp_known && !state->fp_is_frame) {
      counts.unplaced++;
      continue;
    }
    made_up_frame = *state;
    check_step(begin, i, true);
    if (!steps_is_call(code[i]) || i + 1 == steps.count) continue;
    made_up_frame.own[STEP_LR] = made_up_frame.lr_kept = false;
    check_step(begin, i + 1, false);
  }
  counts.wrong_functions += counts.wrong != wrong;
}

// .eh_frame_hdr: version, three encodings (of which the table's is relative to the section), the
// address of .eh_frame, the number of functions; for each where it begins, and its record.
static bool check_file(const char *path) {
  enum { VERSION = 1, PCREL_S4 = 0x1B, UDATA4 = 0x03, DATAREL_S4 = 0x3B };
  static struct cs_rows rows;
  uint64_t before = counts.functions;
  if (!map_file(path) || !compile(path, &rows)) {
    printf("%s cannot be read\n", path);
    return false;
  }
  const Elf64_Shdr *hdr = section(".eh_frame_hdr"), *frames = section(".eh_frame");
  const uint8_t *head = file + hdr->sh_offset;
  const uint8_t expected[] = {VERSION, PCREL_S4, UDATA4, DATAREL_S4};
  if (memcmp(head, expected, sizeof expected) != 0) return false;
  uint32_t n;
  memcpy(&n, head + 8, sizeof n);
  for (uint32_t i = 0; i < n; i++) {
    int32_t at[2], size;
    memcpy(at, head + 12 + i * 8ul, sizeof at);
    uint64_t record = hdr->sh_addr + (uint64_t)(int64_t)at[1] - frames->sh_addr;
    if (record + 16 > frames->sh_size) return false;
    memcpy(&size, file + frames->sh_offset + record + 12, sizeof size);
    uint64_t begin = hdr->sh_addr + (uint64_t)(int64_t)at[0];
    check_function(begin, begin + (uint32_t)size);
  }
  printf("%s: %llu functions\n", path, (unsigned long long)(counts.functions - before));
  munmap((void *)(uintptr_t)file, file_size);
  return counts.functions != before;
}

int main(int argc, char **argv) {
  uncorrected = argc > 1 && strcmp(argv[1], "--uncorrected") == 0;
  bool ok = argc > 1 && cs_rules_init(&rules);
  world.mem.read = read_made_up;
  world.images = &table.head;
  for (int i = uncorrected ? 2 : 1; i < argc && ok; i++) ok = check_file(argv[i]);
  const struct counts *c = &counts;
  printf(
      "%llu functions (and %llu parts of some), %llu instructions: %llu not reached from an "
      "entry, %llu reached with different frames, %llu whose frame is at no known place\n",
      (unsigned long long)c->functions, (unsigned long long)c->parts,
      (unsigned long long)c->instructions, (unsigned long long)c->unreached,
      (unsigned long long)c->conflicts, (unsigned long long)c->unplaced);
  printf(
      "%llu steps checked, %llu of them after calls; %llu lead elsewhere than to a caller, %llu "
      "have no rule\nwrong: %llu, in %llu functions\n",
      (unsigned long long)c->checked, (unsigned long long)c->calls, (unsigned long long)c->special,
      (unsigned long long)c->refused, (unsigned long long)c->wrong,
      (unsigned long long)c->wrong_functions);
  if (uncorrected) return ok && c->wrong_functions >= KNOWN_FUNCTIONS + 20 ? 0 : 1;
  // Few places escape the check, or it would show little.
  return ok && c->wrong <= KNOWN_PLACES && c->wrong_functions <= KNOWN_FUNCTIONS &&
                 c->corrected != 0 && c->refused * 1000 <= c->checked &&
                 c->conflicts * 100 <= c->instructions
             ? 0
             : 1;
}
