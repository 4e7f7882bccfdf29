// SPDX-License-Identifier: MIT
// lines: the source line that a piece of a method's IL comes from, by the portable PDB that the
// compiler made: embedded in the module's file, or a file of its own. Part of the command, never of
// the recorded program. One thread. Not for handlers.
//
// Files are not believed: every offset and count in them is checked against what is there before it
// is followed, and a PDB is used only if its id is the one that the loaded module names, because
// the lines of another build would be wrong lines.
#ifndef CS_METADATA_LINES_H
#define CS_METADATA_LINES_H

#include "pe/pe.h"
#include "process/target.h"

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
  CS_SYMBOLS_NO_MODULE,  // what the module says of its PDB is not known
  CS_SYMBOLS_AMBIGUOUS,  // modules of different builds were loaded from this path
};

// What a module that was loaded says of its PDB.
struct cs_lines_module {
  const char *path;  // of the module's file, its name here
  const char *pdb;   // where the compiler has put it; NULL or "": not known
  bool known;        // the module could be read; else nothing of it is believed
  bool has_id;       // it names a portable PDB
  bool embedded;     // in the module's file
  uint8_t id[CS_PDB_ID_BYTES];
};

struct cs_lines;
// `target`: whose paths the modules have; it must live longer. Ends the program when there is no
// memory, as cs_allocate.
struct cs_lines *cs_lines_new(const struct cs_target *target);
void cs_lines_free(struct cs_lines *lines);
// The file that the runtime is in. If that is the program, as a single file, PDBs lie beside it:
// its modules have no folder, or the one where they were extracted.
void cs_lines_set_program(struct cs_lines *lines, const char *path);
// A module that may be asked for. The same path with another id: neither has lines.
void cs_lines_add(struct cs_lines *lines, const struct cs_lines_module *module);
// The same by the module's file, for what is loaded by nobody.
void cs_lines_add_file(struct cs_lines *lines, const char *path);
// The symbols of a module, opened when first asked for.
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

// ---- embedded.c ----
// The PDB that is embedded in a module's image, from malloc. NULL: it has none that can be read.
uint8_t *cs_lines_embedded(const struct cs_pe *pe, const struct cs_pe_debug *debug, size_t *size);

// ---- pdb.c: a portable PDB ----
struct cs_pdb;
// Takes `bytes` (from malloc) over, whatever it answers. NULL: not a portable PDB that makes sense.
struct cs_pdb *cs_pdb_open(uint8_t *bytes, size_t size);
const uint8_t *cs_pdb_id(const struct cs_pdb *pdb);  // CS_PDB_ID_BYTES
bool cs_pdb_find(struct cs_pdb *pdb, uint32_t method, uint32_t il, struct cs_line *out);
void cs_pdb_free(struct cs_pdb *pdb);

#endif
