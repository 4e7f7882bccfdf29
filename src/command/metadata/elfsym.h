// SPDX-License-Identifier: MIT
// Names of native functions, from the symbol tables of the mapped files and of separate debug
// files: those that are installed, and those in places that the caller names. One thread.
#pragma once

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
// Where debug files are looked for besides the usual places. A debug file is used only if it has
// the build id of the mapped file, which itself may be gone.
struct cs_elf_places {
  // Absolute paths of directories to look in first: in the directory itself for NAME.dbg or
  // NAME.debug, and below it by build id, as debuggers (.build-id), debuginfod's cache and symbol
  // servers name files.
  const char *const *folders;
  size_t folder_count;
  // Called last, at most once for a file, if a function has no name otherwise. Returns a descriptor
  // of the debug file, which this module closes and which nothing else can change, or -1. May be
  // NULL.
  int (*fetch)(void *context, const uint8_t *id, size_t id_size, const char *path);
  void *context;
};
// Sets the places for files that are not open yet; `fetch` applies to all files. What `places`
// points to must live longer.
void cs_elfsyms_set_places(struct cs_elfsyms *syms, const struct cs_elf_places *places);
// Returns whether the ELF file has this build id and is not shorter than its sections.
bool cs_elf_is(int fd, const uint8_t *id, size_t id_size);
// Opens an image's file under a number that the caller chooses; a number that is in use changes
// nothing. A file that is not proven to be the mapped one gives no names.
void cs_elfsyms_add(struct cs_elfsyms *syms, uint32_t number, const struct cs_elf_image *image);
// Returns the demangled name of the function at a virtual address of the file, or NULL. It is valid
// until the next call.
const char *cs_elfsyms_find(struct cs_elfsyms *syms, uint32_t number, uint64_t vaddr);
// Returns what the function of a runtime at a virtual address is, where its file has no symbol for
// it (metadata/landmarks.h). Returns NULL if that is unknown.
const char *cs_elfsyms_landmark(struct cs_elfsyms *syms, uint32_t number, uint64_t vaddr);
// Returns why an image's file gives no names, as the end of a sentence. Returns NULL if it gives
// names, or there is no file ([vdso]).
const char *cs_elfsyms_refused(const struct cs_elfsyms *syms, uint32_t number);
void cs_elfsyms_free(struct cs_elfsyms *syms);
