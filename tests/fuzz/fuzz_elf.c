// SPDX-License-Identifier: MIT
// An ELF image as it is mapped in a process: program headers, notes, .eh_frame_hdr or a search, the
// image's rows, and what its code reveals of functions. The first two bytes say which of the
// image's pages are mapped executable.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fuzz.h"
#include "native/cfi.h"
#include "native/ehreturn.h"
#include "native/elf.h"
#include "native/quirks.h"
#include "native/startup.h"

enum { MAPPED = 1 << 18, HEAD = 2 };

static struct cs_rules rules;

static void apply_what_is_known(struct cs_process_memory *process,
                                const struct cs_candidate *candidate, const struct cs_elf *elf,
                                const struct cs_cfi_stats *stats, struct cs_rows *rows) {
  unsigned found;
  (void)cs_ehreturn_apply(process, candidate->begin, stats, &rules, rows);
  (void)cs_startup_apply(process, candidate, elf->init, &rules, rows);
  (void)cs_startup_apply(process, candidate, elf->fini, &rules, rows);
  (void)cs_quirks_apply((const uint8_t *)(uintptr_t)candidate->begin,
                        (size_t)(candidate->end - candidate->begin), &rules, rows, &found);
}

static void compile(struct cs_process_memory *process, const struct cs_candidate *candidate,
                    const struct cs_elf *elf) {
  struct cs_error err;
  struct cs_rows rows = {0};
  struct cs_cfi_stats stats = {0};
  size_t size = (size_t)(elf->eh_frame_end - elf->eh_frame);
  uint8_t *bytes = size <= MAPPED ? malloc(size + 1) : NULL;
  if (bytes != NULL && cs_process_memory_read(process, elf->eh_frame, bytes, size)) {
    struct cs_cfi_section section = {bytes, size, elf->eh_frame, elf->hdr, elf->fde_count, process};
    if (cs_cfi_compile(&section, candidate->begin, candidate->end, &rules, &rows, &stats, &err) ==
        CS_CFI_OK)
      apply_what_is_known(process, candidate, elf, &stats, &rows);
    for (uint32_t i = 1; i < rows.count; i++)
      if (rows.ip[i - 1] >= rows.ip[i]) __builtin_trap();
  }
  free(bytes);
  cs_rows_free(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t *image;
  static size_t used;
  static struct cs_elf elf;
  struct cs_process_memory process;
  struct cs_error err;
  if (size <= HEAD || size - HEAD > MAPPED) return 0;
  if (image == NULL) {
    image = mmap(NULL, MAPPED + 2 * CS_ELF_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (image == MAP_FAILED) abort();
    image += CS_ELF_PAGE;
    if (mprotect(image, MAPPED, PROT_READ | PROT_WRITE) != 0 || !cs_rules_init(&rules)) abort();
  }
  uint64_t pages = (size - HEAD + CS_ELF_PAGE - 1) / CS_ELF_PAGE;
  uint64_t first = data[0] % pages, count = 1 + data[1] % (pages - first);
  memset(image, 0, used);
  used = size - HEAD;
  memcpy(image, data + HEAD, used);
  struct cs_candidate candidate = {
      .base = (uint64_t)(uintptr_t)image, .offset = first * CS_ELF_PAGE, .path = "/image"};
  candidate.begin = candidate.base + candidate.offset;
  candidate.end = candidate.begin + count * CS_ELF_PAGE;
  cs_process_memory_init(&process, 0);
  if (cs_elf_open(&process, &candidate, &elf) == CS_ELF_OK &&
      cs_elf_read(&process, &candidate, &elf, &err) == CS_ELF_OK)
    compile(&process, &candidate, &elf);
  cs_process_memory_close(&process);
  if (rules.count < CS_RULES_MAX / 2) return 0;
  cs_rules_free(&rules);
  if (!cs_rules_init(&rules)) abort();
  return 0;
}
