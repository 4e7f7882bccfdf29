// SPDX-License-Identifier: MIT
// Go's linker leaves a note, and puts the toolchain's description of a build into the data even if
// it was told to leave out the note. All reads are guarded. Signal-safe: no.
#include "native/go.h"

#include <stdlib.h>

#include "native/notes.h"

static bool has_note(const struct cs_go_search *go, const Elf64_Phdr *ph) {
  enum { GO_BUILD_ID = 4 };
  struct cs_notes notes;
  struct cs_note note;
  cs_notes_begin(&notes, go->process, go->bias, ph);
  while (cs_notes_next(&notes, &note))
    if (note.type == GO_BUILD_ID && cs_note_is_of(&note, "Go\0", sizeof "Go\0")) return true;
  return false;
}

static bool has_description(struct cs_go_search *go, const Elf64_Phdr *ph) {
  static const uint8_t magic[] = "\xFF Go buildinf:";
  enum { STEP = 16, PIECE = 64 << 10, MAX_BYTES = 64 << 20 };
  uint64_t at = (go->bias + ph->p_vaddr + STEP - 1) & ~(STEP - 1ull);
  uint64_t left = MAX_BYTES - go->searched;
  uint64_t end = go->bias + ph->p_vaddr + (ph->p_filesz < left ? ph->p_filesz : left);
  uint8_t *bytes = malloc(PIECE);
  bool found = false;
  while (bytes != NULL && at < end && !found) {
    size_t size = end - at < PIECE ? (size_t)(end - at) : PIECE;
    if (!cs_process_memory_read(go->process, at, bytes, size)) break;
    for (size_t i = 0; i + sizeof magic <= size && !found; i += STEP)
      found = memcmp(bytes + i, magic, sizeof magic - 1) == 0;
    at += size;
    go->searched += size;
  }
  free(bytes);
  return found;
}

bool cs_go_is_in(struct cs_go_search *go, const Elf64_Phdr *ph) {
  return (ph->p_type == PT_NOTE && has_note(go, ph)) ||
         (ph->p_type == PT_LOAD && (ph->p_flags & PF_W) != 0 && has_description(go, ph));
}
