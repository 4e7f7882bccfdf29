// SPDX-License-Identifier: MIT
// The notes of a mapped ELF image. Not for handlers.
#pragma once

#include <elf.h>

#include "native/maps.h"

enum { CS_NOTES_MAX = 2048 };  // bytes read of a segment; the rest is ignored

struct cs_notes {
  uint8_t bytes[CS_NOTES_MAX];
  uint64_t address;
  struct cs_cursor c;
};

struct cs_note {
  uint32_t type, name_size, size;
  const uint8_t *name;
  uint64_t address;  // of the `size` bytes of its content
};

// Reads a segment of notes; one that cannot be read counts as empty.
static inline void cs_notes_begin(struct cs_notes *notes, struct cs_process_memory *process,
                                  uint64_t bias, const Elf64_Phdr *ph) {
  size_t size = ph->p_filesz < CS_NOTES_MAX ? (size_t)ph->p_filesz : CS_NOTES_MAX;
  notes->address = bias + ph->p_vaddr;
  bool read = cs_process_memory_read(process, notes->address, notes->bytes, size);
  notes->c = cs_cursor(notes->bytes, read ? size : 0);
}

// Returns false if there is no further note.
static inline bool cs_notes_next(struct cs_notes *notes, struct cs_note *note) {
  struct cs_cursor *c = &notes->c;
  note->name_size = cs_cursor_u32(c);
  note->size = cs_cursor_u32(c);
  note->type = cs_cursor_u32(c);
  note->name = c->at;
  cs_cursor_skip(c, (note->name_size + 3ull) & ~3ull);
  note->address = notes->address + (uint64_t)(c->at - notes->bytes);
  cs_cursor_skip(c, (note->size + 3ull) & ~3ull);
  return !c->bad;
}

// Returns whether the note is of `owner`, whose `size` bytes include the NULs that are part of the
// name.
static inline bool cs_note_is_of(const struct cs_note *note, const char *owner, size_t size) {
  return note->name_size == size && memcmp(note->name, owner, size) == 0;
}
