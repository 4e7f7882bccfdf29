// SPDX-License-Identifier: MIT
// pe: the headers of a managed module's PE image, and what it says about its PDB, read from a file
// or from the memory of the process that has loaded it. Used by the command and the agent. A struct
// is used by one thread at a time. Not for handlers.
//
// Images are not trusted: every offset and size in them is checked by the read itself.
#pragma once

#include "base/base.h"

enum cs_pe_layout {
  CS_PE_FLAT,    // as in the file
  CS_PE_MAPPED,  // with each section at its RVA
};

// Reads `size` bytes at `offset`; returns false if it cannot read all of them.
typedef bool cs_pe_read_fn(void *from, uint64_t offset, void *out, size_t size);

struct cs_pe {
  cs_pe_read_fn *read;
  void *from;
  enum cs_pe_layout layout;
  uint32_t stamp, image_size;  // the linker's time stamp; bytes when mapped
  uint32_t section_count;
  uint64_t sections;  // offset of the first section's header
  uint32_t directory_count;
  struct {
    uint32_t rva, size;
  } directory[16];
};
enum { CS_PE_DEBUG = 6, CS_PE_CLI = 14 };  // data directories

// Returns false if it is not a PE image, or cannot be read.
bool cs_pe_open(struct cs_pe *pe, cs_pe_read_fn *read, void *from, enum cs_pe_layout layout);
// Opens a managed image in memory, in the layout in which the metadata is where the image says.
bool cs_pe_open_loaded(struct cs_pe *pe, cs_pe_read_fn *read, void *from);
// Finds the metadata. Returns false if the module has none.
bool cs_pe_metadata(const struct cs_pe *pe, uint64_t *offset, uint32_t *size);
// Finds the content of a data directory. Returns false if it has none.
bool cs_pe_directory(const struct cs_pe *pe, unsigned which, uint64_t *offset, uint32_t *size);
// Translates an RVA to an offset. Returns false if the image has nothing there.
bool cs_pe_place(const struct cs_pe *pe, uint32_t rva, uint64_t *offset);
bool cs_pe_bytes(const struct cs_pe *pe, uint64_t offset, void *out, size_t size);

// ---- debug.c: the PDB ----
enum { CS_PDB_ID_BYTES = 20 };
struct cs_pe_debug {
  bool has_id;                  // it names a portable PDB; if not, id and path are not set
  uint8_t id[CS_PDB_ID_BYTES];  // of the PDB that was made with the module
  char path[1024];              // to which the compiler wrote the PDB
  uint64_t embedded;            // offset of the embedded, deflated PDB
  uint32_t embedded_size;       // 0: there is none
};
// Returns false, with *out empty, if the directory cannot be read.
bool cs_pe_read_debug(const struct cs_pe *pe, struct cs_pe_debug *out);
