// SPDX-License-Identifier: MIT
// ELF images as they are mapped: where their unwind data is. Not for handlers.
#ifndef CS_NATIVE_ELF_H
#define CS_NATIVE_ELF_H

#include "native/maps.h"

enum cs_elf_result {
  CS_ELF_OK,
  CS_ELF_NOT,         // no 64-bit little-endian ELF image at all: nothing to say about it
  CS_ELF_UNREADABLE,  // not (or no longer) mapped as its headers say: not this time
  CS_ELF_MALFORMED,
};

enum { CS_ELF_PAGE = 4096 };

struct cs_elf {
  uint64_t bias;                    // address = bias + the file's virtual address
  uint64_t fingerprint;             // of the first page: headers, and as a rule the build id
  uint64_t hdr;                     // .eh_frame_hdr; 0: the image has none that is of use
  uint64_t eh_frame, eh_frame_end;  // the end may be the segment's; 0: no .eh_frame
  uint64_t init, fini;              // functions of DT_INIT and DT_FINI, 0: none
  uint64_t id_address;              // of the build id, 0: it has none
  uint32_t id_size;
  bool is_coreclr;     // it exports the runtime's descriptor
  bool small_stacks;   // its code runs on small stacks of its own: Go's
  uint32_t fde_count;  // as .eh_frame_hdr has it or as were found, 0: not said
  uint8_t page[CS_ELF_PAGE];
};

// Reads the first page and takes its fingerprint. CS_ELF_OK, CS_ELF_NOT or CS_ELF_UNREADABLE.
enum cs_elf_result cs_elf_open(struct cs_process_memory *process,
                               const struct cs_candidate *candidate, struct cs_elf *elf);
// The rest: program headers, notes, .eh_frame by .eh_frame_hdr or by a search (search.h).
enum cs_elf_result cs_elf_read(struct cs_process_memory *process,
                               const struct cs_candidate *candidate, struct cs_elf *elf,
                               struct cs_error *err);

#endif
