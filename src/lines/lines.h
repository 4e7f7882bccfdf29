// SPDX-License-Identifier: MIT
// lines: the source line that a piece of a method's IL comes from, by the portable PDB that the
// compiler made: embedded in the module's file, or a file of its own. Part of the command, never of
// the recorded program. One thread. Not for handlers.
//
// Files are not believed: every offset and count in them is checked against what is there before it
// is followed, and a PDB is used only if its id is the one that the module names, because the lines
// of another build would be wrong lines.
#ifndef CS_LINES_H
#define CS_LINES_H

#include "base/base.h"

struct cs_line {
  const char
      *file;  // the path as the compiler was given it; valid as long as its cs_lines or cs_pdb
  uint32_t line;
};

enum cs_symbols {
  CS_SYMBOLS_FOUND,
  CS_SYMBOLS_NONE,       // the module names no portable PDB, or there is no file where it should be
  CS_SYMBOLS_OTHER,      // there is one, of another build of the module
  CS_SYMBOLS_BROKEN,     // there is one, but it cannot be read
  CS_SYMBOLS_NO_MODULE,  // the module's own file cannot be read
};

struct cs_lines;
struct cs_lines *cs_lines_new(void);  // ends the program when there is no memory, as cs_allocate
void cs_lines_free(struct cs_lines *lines);
// The symbols of a module (its file's path), opened when first asked for.
enum cs_symbols cs_lines_of_module(struct cs_lines *lines, const char *module);
// The line of a method (its mdMethodDef) at an IL offset: that of the last visible sequence point
// at or before it, or else of the first one. False: the module has no symbols, or the method no
// line.
bool cs_lines_find(struct cs_lines *lines, const char *module, uint32_t method, uint32_t il,
                   struct cs_line *out);
// Calls `visit` for each module that was asked for.
void cs_lines_visit(const struct cs_lines *lines,
                    void (*visit)(const char *module, enum cs_symbols symbols, void *data),
                    void *data);

// ---- pe.c: what a module's file says of its PDB ----
enum { CS_PDB_ID_BYTES = 20 };
struct cs_pe_debug {
  bool has_id;  // it names a portable PDB; the rest is not set otherwise
  uint8_t id[CS_PDB_ID_BYTES];
  char path[1024];    // where the compiler has put it
  uint8_t *embedded;  // the PDB itself, from malloc, or NULL
  size_t embedded_size;
};
// False: no PE file that can be read. The caller frees `embedded`.
bool cs_pe_read_debug(const char *path, struct cs_pe_debug *out);

// ---- pdb.c: a portable PDB ----
struct cs_pdb;
// Takes `bytes` (from malloc) over, whatever it answers. NULL: not a portable PDB that makes sense.
struct cs_pdb *cs_pdb_open(uint8_t *bytes, size_t size);
const uint8_t *cs_pdb_id(const struct cs_pdb *pdb);  // CS_PDB_ID_BYTES
bool cs_pdb_find(struct cs_pdb *pdb, uint32_t method, uint32_t il, struct cs_line *out);
void cs_pdb_free(struct cs_pdb *pdb);

#endif
