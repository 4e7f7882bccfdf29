// SPDX-License-Identifier: MIT
// Names of native functions, from the symbol tables of the files that were mapped, and from
// separate debug files where they are installed. Never asks a server. One thread.
#ifndef CS_METADATA_ELFSYM_H
#define CS_METADATA_ELFSYM_H

#include "process/target.h"

// A mapped ELF file: where it was, and its build id as the process had it in memory.
struct cs_elf_image {
  struct cs_target_mapping mapping;
  uint32_t id_size;  // 0: it has none
  const uint8_t *id;
};

struct cs_elfsyms;  // the files that have been opened
// `target`: whose files they are; it must live longer.
struct cs_elfsyms *cs_elfsyms_new(const struct cs_target *target);
// Opens an image's file, as long as it can be had, under a number of the caller's choice; a number
// that is known already changes nothing. A file that is not proven to be the one that was mapped
// gives no names.
void cs_elfsyms_add(struct cs_elfsyms *syms, uint32_t number, const struct cs_elf_image *image);
// The name, demangled, of the function that holds a virtual address of the file; NULL when the file
// does not say. Valid until the next call.
const char *cs_elfsyms_find(struct cs_elfsyms *syms, uint32_t number, uint64_t vaddr);
// Why an image's file gives no names: a sentence's end. NULL: it does, or there can be none
// ([vdso]).
const char *cs_elfsyms_refused(const struct cs_elfsyms *syms, uint32_t number);
void cs_elfsyms_free(struct cs_elfsyms *syms);

#endif
