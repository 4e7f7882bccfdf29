// SPDX-License-Identifier: MIT
// From a module's path to its symbols: the embedded PDB, else a file beside the module, else where
// the compiler has put it. Invariant: a PDB is used only if its id is the module's. One thread.
// Signal-safe: no.
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "lines/lines.h"

enum { MAX_PDB_FILE = 512 << 20 };

struct module {
  struct module *next;
  char *path;
  enum cs_symbols symbols;
  struct cs_pdb *pdb;  // CS_SYMBOLS_FOUND
};
struct cs_lines {
  struct module *modules;  // the one that was asked for last comes first
};

static void *must(void *memory) {
  if (memory != NULL) return memory;
  (void)fputs("clrsnap: out of memory\n", stderr);
  exit(1);
}

struct cs_lines *cs_lines_new(void) {
  return must(calloc(1, sizeof(struct cs_lines)));
}

void cs_lines_free(struct cs_lines *lines) {
  if (lines == NULL) return;
  for (struct module *m = lines->modules, *next; m != NULL; m = next) {
    next = m->next;
    cs_pdb_free(m->pdb);
    free(m->path);
    free(m);
  }
  free(lines);
}

static bool read_whole(int fd, uint8_t *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t got = read(fd, bytes + done, size - done);
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

// NULL: there is no such file, or it cannot be read.
static uint8_t *read_file(const char *path, size_t *size) {
  struct stat st;
  uint8_t *bytes = NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return NULL;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= MAX_PDB_FILE) {
    *size = (size_t)st.st_size;
    bytes = malloc(*size);
    if (bytes != NULL && !read_whole(fd, bytes, *size)) {
      free(bytes);
      bytes = NULL;
    }
  }
  (void)close(fd);
  return bytes;
}

// Takes `bytes` over. What was seen before is kept where this is no better.
static void try_pdb(struct module *m, const uint8_t *id, uint8_t *bytes, size_t size) {
  struct cs_pdb *pdb = cs_pdb_open(bytes, size);
  if (pdb == NULL) {
    m->symbols = CS_SYMBOLS_BROKEN;
  } else if (memcmp(cs_pdb_id(pdb), id, CS_PDB_ID_BYTES) != 0) {
    m->symbols = CS_SYMBOLS_OTHER;
    cs_pdb_free(pdb);
  } else {
    m->symbols = CS_SYMBOLS_FOUND;
    m->pdb = pdb;
  }
}

static void try_file(struct module *m, const uint8_t *id, const char *path) {
  size_t size = 0;
  uint8_t *bytes = m->symbols == CS_SYMBOLS_FOUND ? NULL : read_file(path, &size);
  if (bytes != NULL) try_pdb(m, id, bytes, size);
}

static void open_symbols(struct module *m) {
  struct cs_pe_debug debug;
  char beside[PATH_MAX];
  m->symbols = CS_SYMBOLS_NO_MODULE;
  if (!cs_pe_read_debug(m->path, &debug)) return;
  m->symbols = CS_SYMBOLS_NONE;
  if (!debug.has_id) {
    free(debug.embedded);
    return;
  }
  if (debug.embedded != NULL) try_pdb(m, debug.id, debug.embedded, debug.embedded_size);
  int folder = (int)(cs_file_of(m->path) - m->path);
  int len =
      snprintf(beside, sizeof beside, "%.*s%s", folder, m->path, cs_file_of_source(debug.path));
  if (len > 0 && (size_t)len < sizeof beside) try_file(m, debug.id, beside);
  try_file(m, debug.id, debug.path);
}

static struct module *module_of(struct cs_lines *lines, const char *path) {
  struct module **link = &lines->modules, *m;
  while ((m = *link) != NULL && strcmp(m->path, path) != 0) link = &m->next;
  if (m != NULL) {
    *link = m->next;
  } else {
    m = must(calloc(1, sizeof *m));
    m->path = must(strdup(path));
    open_symbols(m);
  }
  m->next = lines->modules;
  lines->modules = m;
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
    visit(m->path, m->symbols, data);
}
