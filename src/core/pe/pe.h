// SPDX-License-Identifier: MIT
// pe: the headers of a managed module's PE image, and what it says of its PDB; from a file, or from
// the memory of a process that has loaded it, which is the one that runs. Part of the command and
// of the agent. One thread for each struct. Not for handlers.
//
// Images are not believed: every offset and size in them is checked by the read itself.
#ifndef CS_PE_PE_H
#define CS_PE_PE_H

#include "base/base.h"

enum cs_pe_layout {
  CS_PE_FLAT,    // byte for byte, as the file has it
  CS_PE_MAPPED,  // each section at its RVA
};

// Reads all of it, or returns false.
typedef bool cs_pe_read_fn(void *from, uint64_t offset, void *out, size_t size);

struct cs_pe {
  cs_pe_read_fn *read;
  void *from;
  enum cs_pe_layout layout;
  uint32_t stamp, image_size;  // the linker's stamp, and how much memory it takes mapped
  uint32_t section_count;
  uint64_t sections;  // offset of the first section's header
  uint32_t directory_count;
  struct {
    uint32_t rva, size;
  } directory[16];
};
enum { CS_PE_DEBUG = 6, CS_PE_CLI = 14 };  // directories

// False: no PE image that can be read.
bool cs_pe_open(struct cs_pe *pe, cs_pe_read_fn *read, void *from, enum cs_pe_layout layout);
// A managed one in memory. The layout is found out: where the image says that its metadata is, it
// is.
bool cs_pe_open_loaded(struct cs_pe *pe, cs_pe_read_fn *read, void *from);
// Where the metadata of a managed module is. False: it is none.
bool cs_pe_metadata(const struct cs_pe *pe, uint64_t *offset, uint32_t *size);
// Where a directory's content is. False: it has none.
bool cs_pe_directory(const struct cs_pe *pe, unsigned which, uint64_t *offset, uint32_t *size);
bool cs_pe_offset(const struct cs_pe *pe, uint32_t rva, uint64_t *offset);
bool cs_pe_bytes(const struct cs_pe *pe, uint64_t offset, void *out, size_t size);

// ---- debug.c: what it says of its PDB ----
enum { CS_PDB_ID_BYTES = 20 };
struct cs_pe_debug {
  bool has_id;                  // it names a portable PDB; id and path are not set otherwise
  uint8_t id[CS_PDB_ID_BYTES];  // of the one that was made with it
  char path[1024];              // where the compiler has put it
  uint64_t embedded;            // offset of the PDB itself, deflated; meaningless if there is none
  uint32_t embedded_size;       // 0: it is not embedded
};
// False: the directory cannot be read; *out is empty.
bool cs_pe_read_debug(const struct cs_pe *pe, struct cs_pe_debug *out);

#endif
