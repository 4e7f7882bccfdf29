// SPDX-License-Identifier: MIT
// From a module to its symbols: the embedded PDB, or else a file beside the module, or else the
// file that the compiler wrote. Invariant: a PDB is used only if its id is the module's. One
// thread. Signal-safe: no.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/print.h"
#include "metadata/lines.h"

enum { MAX_PDB_FILE = 512 << 20 };

struct module {
  struct module *next;
  struct cs_lines_module is;
  bool asked, ambiguous;
  enum cs_symbols symbols;
  struct cs_pdb *pdb;  // CS_SYMBOLS_FOUND
};
struct cs_lines {
  const struct cs_target *target;
  struct cs_target *machine;  // this one: a PDB is known by its id, wherever it is
  char *program;              // NULL: not known
  struct module *modules;     // the one that was asked for last comes first
};

static void *must(void *memory) {
  if (memory != NULL) return memory;
  cs_print(stderr, "clrsnap: out of memory\n");
  exit(1);
}

struct cs_lines *cs_lines_new(const struct cs_target *target) {
  struct cs_lines *lines = must(calloc(1, sizeof *lines));
  lines->target = target;
  lines->machine = cs_target_of(0);
  return lines;
}

void cs_lines_free(struct cs_lines *lines) {
  if (lines == NULL) return;
  for (struct module *m = lines->modules, *next; m != NULL; m = next) {
    next = m->next;
    cs_pdb_free(m->pdb);
    free((char *)(uintptr_t)m->is.path);
    free((char *)(uintptr_t)m->is.pdb);
    free(m);
  }
  cs_target_free(lines->machine);
  free(lines->program);
  free(lines);
}

void cs_lines_set_program(struct cs_lines *lines, const char *path) {
  free(lines->program);
  lines->program = must(strdup(path));
}

// Takes ownership of `bytes`. A worse result does not replace a better one.
static void try_pdb(struct module *m, uint8_t *bytes, size_t size) {
  struct cs_pdb *pdb = cs_pdb_open(bytes, size);
  if (pdb == NULL) {
    m->symbols = CS_SYMBOLS_BROKEN;
  } else if (memcmp(cs_pdb_id(pdb), m->is.id, CS_PDB_ID_BYTES) != 0) {
    m->symbols = CS_SYMBOLS_OTHER;
    cs_pdb_free(pdb);
  } else {
    m->symbols = CS_SYMBOLS_FOUND;
    m->pdb = pdb;
  }
}

static void try_file(const struct cs_lines *lines, struct module *m, const char *path) {
  const struct cs_target *places[] = {lines->target, lines->machine};
  for (size_t i = 0; i < CS_COUNT(places) && m->symbols != CS_SYMBOLS_FOUND; i++) {
    size_t size = 0;
    uint8_t *bytes = cs_target_read(places[i], path, MAX_PDB_FILE, &size);
    if (bytes != NULL) try_pdb(m, bytes, size);
  }
}

static bool read_fd(void *from, uint64_t offset, void *out, size_t size) {
  return pread(*(const int *)from, out, size, (off_t)offset) == (ssize_t)size;
}

// In the module's file, which may be of another build by now.
static void try_embedded(const struct cs_lines *lines, struct module *m) {
  struct cs_pe pe;
  struct cs_pe_debug debug;
  struct cs_error err;
  size_t size = 0;
  int fd = cs_target_open(lines->target, m->is.path, &err);
  if (fd < 0) return;
  if (cs_pe_open(&pe, read_fd, &fd, CS_PE_FLAT) && cs_pe_read_debug(&pe, &debug)) {
    uint8_t *bytes = cs_lines_embedded(&pe, &debug, &size);
    if (bytes != NULL) try_pdb(m, bytes, size);
  }
  (void)close(fd);
}

// The PDB under its own name in the directory of `file`.
static void try_beside(const struct cs_lines *lines, struct module *m, const char *file) {
  char beside[PATH_MAX];
  int folder = (int)(cs_file_of(file) - file);
  int len = snprintf(beside, sizeof beside, "%.*s%s", folder, file, cs_file_of_source(m->is.pdb));
  if (len > 0 && (size_t)len < sizeof beside) try_file(lines, m, beside);
}

static void open_symbols(const struct cs_lines *lines, struct module *m) {
  m->symbols = m->ambiguous   ? CS_SYMBOLS_AMBIGUOUS
               : !m->is.known ? CS_SYMBOLS_NO_MODULE
                              : CS_SYMBOLS_NONE;
  if (m->ambiguous || !m->is.known || !m->is.has_id) return;
  if (m->is.embedded) try_embedded(lines, m);
  try_beside(lines, m, m->is.path);
  if (m->symbols != CS_SYMBOLS_FOUND && lines->program != NULL)
    try_beside(lines, m, lines->program);
  try_file(lines, m, m->is.pdb);
  if (m->symbols == CS_SYMBOLS_NONE && m->is.embedded) m->symbols = CS_SYMBOLS_EMBEDDED;
}

// The module of that path, which is moved to the front. Returns NULL if that is unknown.
static struct module *find_module(struct cs_lines *lines, const char *path) {
  struct module **link = &lines->modules, *m;
  while ((m = *link) != NULL && strcmp(m->is.path, path) != 0) link = &m->next;
  if (m == NULL) return NULL;
  *link = m->next;
  m->next = lines->modules;
  return lines->modules = m;
}

static struct module *add_module(struct cs_lines *lines, const struct cs_lines_module *is) {
  struct module *m = must(calloc(1, sizeof *m));
  m->is = *is;
  m->is.path = must(strdup(is->path));
  m->is.pdb = must(strdup(is->pdb != NULL ? is->pdb : ""));
  m->next = lines->modules;
  return lines->modules = m;
}

void cs_lines_add(struct cs_lines *lines, const struct cs_lines_module *is) {
  struct module *m = find_module(lines, is->path);
  if (m == NULL) {
    (void)add_module(lines, is);
  } else if (m->is.known != is->known || m->is.has_id != is->has_id ||
             memcmp(m->is.id, is->id, sizeof m->is.id) != 0) {
    m->ambiguous = true;
    if (m->asked) m->symbols = CS_SYMBOLS_AMBIGUOUS;
    cs_pdb_free(m->pdb);
    m->pdb = NULL;
  }
}

void cs_lines_add_file(struct cs_lines *lines, const char *path) {
  struct cs_lines_module is = {.path = path};
  struct cs_pe pe;
  struct cs_pe_debug debug = {.has_id = false};
  struct cs_error err;
  int fd = cs_target_open(lines->target, path, &err);
  if (fd >= 0 && cs_pe_open(&pe, read_fd, &fd, CS_PE_FLAT)) {
    (void)cs_pe_read_debug(&pe, &debug);
    is.known = true;
    is.has_id = debug.has_id;
    is.embedded = debug.embedded_size != 0;
    is.pdb = debug.path;
    memcpy(is.id, debug.id, sizeof is.id);
  }
  if (fd >= 0) (void)close(fd);
  cs_lines_add(lines, &is);
}

static struct module *module_of(struct cs_lines *lines, const char *path) {
  struct module *m = find_module(lines, path);
  if (m == NULL) m = add_module(lines, &(struct cs_lines_module){.path = path});
  if (!m->asked) open_symbols(lines, m);
  m->asked = true;
  return m;
}

enum cs_symbols cs_lines_of_module(struct cs_lines *lines, const char *module) {
  return module_of(lines, module)->symbols;
}

bool cs_lines_find(struct cs_lines *lines, const char *module, uint32_t method, uint32_t il,
                   struct cs_line *out) {
  struct module *m = module_of(lines, module);
  return m->pdb != NULL && cs_pdb_find(m->pdb, method, il, out);
}

void cs_lines_visit(const struct cs_lines *lines,
                    void (*visit)(const char *module, enum cs_symbols symbols, void *data),
                    void *data) {
  for (const struct module *m = lines->modules; m != NULL; m = m->next)
    if (m->asked) visit(m->is.path, m->symbols, data);
}
