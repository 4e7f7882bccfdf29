// SPDX-License-Identifier: MIT
// Names of native functions, from the symbol tables of the mapped files and from separate debug
// files: those that are installed, and those that the caller knows of. One thread.
#ifndef CS_METADATA_ELFSYM_H
#define CS_METADATA_ELFSYM_H

#include "process/target.h"

// A mapped ELF file: its mapping, and its build id as read from memory.
struct cs_elf_image {
  struct cs_target_mapping mapping;
  uint32_t id_size;  // 0: it has none
  const uint8_t *id;
};

struct cs_elfsyms;  // the files that have been opened
// `target` has the files, and must live longer.
struct cs_elfsyms *cs_elfsyms_new(const struct cs_target *target);
// Where debug files are looked for besides the usual places. One is used only if it has the build id
// of the mapped file, and is enough where that is gone.
struct cs_elf_places {
  // Looked in first: in the folder itself for NAME.dbg or NAME.debug, and below it by build id, as
  // debuggers (.build-id), debuginfod's cache and symbol servers have them. Absolute paths.
  const char *const *folders;
  size_t folder_count;
  // Asked last, at most once for a file, if a function has no name otherwise: returns a descriptor
  // of the debug file, which becomes the callee's and which nobody else can change, or -1. NULL:
  // nobody is asked.
  int (*fetch)(void *context, const uint8_t *id, size_t id_size, const char *path);
  void *context;
};
// Applies to files that have not been asked for yet, except for `fetch`, which applies to all. What
// it points to must live longer.
void cs_elfsyms_look_in(struct cs_elfsyms *syms, const struct cs_elf_places *places);
// Whether an ELF file has this build id and is not shorter than its sections.
bool cs_elf_is(int fd, const uint8_t *id, size_t id_size);
// Opens an image's file under a number that the caller chooses; a number that is in use changes
// nothing. A file that is not proven to be the mapped one gives no names.
void cs_elfsyms_add(struct cs_elfsyms *syms, uint32_t number, const struct cs_elf_image *image);
// The demangled name of the function at a virtual address of the file; NULL: unknown. Valid until
// the next call.
const char *cs_elfsyms_find(struct cs_elfsyms *syms, uint32_t number, uint64_t vaddr);
// Of a runtime's image: what the function at a virtual address is, where the file has no symbol for
// it (metadata/landmarks.h). NULL: unknown.
const char *cs_elfsyms_landmark(struct cs_elfsyms *syms, uint32_t number, uint64_t vaddr);
// Why an image's file gives no names, as the end of a sentence. NULL: it does, or there is no file
// ([vdso]).
const char *cs_elfsyms_refused(const struct cs_elfsyms *syms, uint32_t number);
void cs_elfsyms_free(struct cs_elfsyms *syms);

#endif
