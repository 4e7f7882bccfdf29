// SPDX-License-Identifier: MIT
// Finds the unwind data of mapped ELF images. Not for handlers.
#pragma once

#include "native/maps.h"

enum cs_elf_result {
  CS_ELF_OK,
  CS_ELF_NOT,         // not a 64-bit little-endian ELF image, so nothing is reported
  CS_ELF_UNREADABLE,  // not, or no longer, mapped as its headers say; skipped this time
  CS_ELF_MALFORMED,
};

enum { CS_ELF_PAGE = 4096 };

struct cs_elf {
  uint64_t bias;                    // address = bias + virtual address in the file
  uint64_t fingerprint;             // of the first page: headers, and usually the build id
  uint64_t hdr;                     // .eh_frame_hdr; 0: the image has no usable one
  uint64_t eh_frame, eh_frame_end;  // the end may be that of the segment; 0: no .eh_frame
  uint64_t init, fini;              // functions of DT_INIT and DT_FINI, 0: none
  uint64_t entry;                   // of the program; 0: it is a library
  uint64_t id_address;              // of the build id, 0: it has none
  uint32_t id_size;
  bool is_coreclr;     // it exports the runtime's descriptor
  bool small_stacks;   // its code (Go's) runs on small stacks of its own
  uint32_t fde_count;  // from .eh_frame_hdr, or found by the search; 0: unknown
  uint8_t page[CS_ELF_PAGE];
};

// Reads the first page and computes its fingerprint. Returns CS_ELF_OK, CS_ELF_NOT or
// CS_ELF_UNREADABLE.
enum cs_elf_result cs_elf_open(struct cs_process_memory *process,
                               const struct cs_candidate *candidate, struct cs_elf *elf);
// Reads the rest: program headers, notes, and .eh_frame, by .eh_frame_hdr or by a search
// (search.h).
enum cs_elf_result cs_elf_read(struct cs_process_memory *process,
                               const struct cs_candidate *candidate, struct cs_elf *elf,
                               struct cs_error *err);
