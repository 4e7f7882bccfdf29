// SPDX-License-Identifier: MIT
// The source line of a place in a method's IL, from the compiler's portable PDB, which is embedded
// in the module's file or a file of its own. Runs in the command, not in the recorded program. One
// thread.
//
// Files are not trusted: every offset and count is checked before it is used, and a PDB is used
// only if its id is the one that the loaded module names, because another build has other lines.
#pragma once

#include "pe/pe.h"
#include "process/target.h"

struct cs_line {
  const char *file;  // the path as the compiler was given it; owned by cs_lines or cs_pdb
  uint32_t line;
};

enum cs_symbols {
  CS_SYMBOLS_FOUND,
  CS_SYMBOLS_NONE,       // the module names no portable PDB, or its file is missing
  CS_SYMBOLS_OTHER,      // the PDB is of another build of the module
  CS_SYMBOLS_BROKEN,     // the PDB cannot be read
  CS_SYMBOLS_NO_MODULE,  // the module in memory could not be read
  CS_SYMBOLS_EMBEDDED,   // the PDB is in the module's file, which is not there; nor is it beside it
  CS_SYMBOLS_AMBIGUOUS,  // modules of different builds were loaded from this path
};

// What a loaded module says of its PDB.
struct cs_lines_module {
  const char *path;  // of the module's file; identifies the module
  const char *pdb;   // where the compiler wrote it; NULL or "": unknown
  bool known;        // the module could be read; otherwise the next fields mean nothing
  bool has_id;       // it names a portable PDB
  bool embedded;     // in the module's file
  uint8_t id[CS_PDB_ID_BYTES];
};

struct cs_lines;
// `target` is the process whose paths the modules have, and must live longer.
struct cs_lines *cs_lines_new(const struct cs_target *target);
void cs_lines_free(struct cs_lines *lines);
// The file that contains the runtime. PDBs of a single-file program are beside it, because its
// modules have no directory, or that of their extraction.
void cs_lines_set_program(struct cs_lines *lines, const char *path);
// Adds a module. If a path has two different ids, neither module has lines.
void cs_lines_add(struct cs_lines *lines, const struct cs_lines_module *module);
// The same from the module's file, for a module that is not loaded.
void cs_lines_add_file(struct cs_lines *lines, const char *path);
// Returns the state of a module's symbols, which are opened on first use.
enum cs_symbols cs_lines_of_module(struct cs_lines *lines, const char *module);
// Instead of an IL offset: the method's first line, or its last one.
#define CS_LINES_FIRST 0xFFFFFFFEu
#define CS_LINES_LAST 0xFFFFFFFFu
// The line of a method (mdMethodDef) at an IL offset: that of the last sequence point at or before
// it, or else of the first visible one. Returns false if the module has no symbols, the method no
// line, or the code there is hidden: by "#line hidden", or because it is the compiler's own.
bool cs_lines_find(struct cs_lines *lines, const char *module, uint32_t method, uint32_t il,
                   struct cs_line *out);
// Calls `visit` for each module that a line was asked of.
void cs_lines_visit(const struct cs_lines *lines,
                    void (*visit)(const char *module, enum cs_symbols symbols, void *data),
                    void *data);

// ---- embedded.c ----
// The PDB that is embedded in a module's image, from malloc. Returns NULL if none can be read.
uint8_t *cs_lines_embedded(const struct cs_pe *pe, const struct cs_pe_debug *debug, size_t *size);

// ---- pdb.c: a portable PDB ----
struct cs_pdb;
// Takes ownership of `bytes` (from malloc), also if it fails. NULL: not a valid portable PDB.
struct cs_pdb *cs_pdb_open(uint8_t *bytes, size_t size);
const uint8_t *cs_pdb_id(const struct cs_pdb *pdb);  // CS_PDB_ID_BYTES
bool cs_pdb_find(struct cs_pdb *pdb, uint32_t method, uint32_t il, struct cs_line *out);
void cs_pdb_free(struct cs_pdb *pdb);
