// SPDX-License-Identifier: MIT
// Native symbols by elfutils. Invariant: a name is only given for an address inside the symbol's
// own size: "the nearest symbol before" is how a stripped libcoreclr gets wrong names.
// Every file is one module at bias 0 of a Dwfl of its own, so addresses are the file's own.
// One thread. Signal-safe: no.
#include "cli/elfsym.h"

#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "export/map.h"

typedef char *demangle_fn(const char *mangled, char *buffer, size_t *len, int *status);

struct file {
  char *path;
  Dwfl *dwfl;           // NULL: cannot be read
  Dwfl_Module *module;  // belongs to dwfl
};

struct cs_elfsyms {
  struct file *files;
  size_t count, capacity;
  demangle_fn *demangle;  // NULL: names stay mangled
  char *readable;         // the last answer
};

struct cs_elfsyms *cs_elfsyms_new(void) {
  struct cs_elfsyms *syms = cs_allocate(sizeof *syms);
  // elfutils would fetch debug files over the network; a profiler must not do so unasked.
  (void)unsetenv("DEBUGINFOD_URLS");
  // The C++ runtime library is there wherever .NET runs; no need to be linked to it.
  void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
  if (library != NULL) {
    void *symbol = dlsym(library, "__cxa_demangle");
    memcpy(&syms->demangle, &symbol, sizeof symbol);  // ISO C knows no cast for this
  }
  return syms;
}

static Dwfl *open_file(const char *path, Dwfl_Module **module) {
  static const Dwfl_Callbacks callbacks = {
      .find_elf = dwfl_build_id_find_elf,
      .find_debuginfo = dwfl_standard_find_debuginfo,
      .section_address = dwfl_offline_section_address,
  };
  struct stat st;
  // The path is the target's word: a FIFO or a device would hang us.
  if (path[0] != '/' || stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return NULL;
  Dwfl *dwfl = dwfl_begin(&callbacks);
  if (dwfl == NULL) return NULL;
  dwfl_report_begin(dwfl);
  *module = dwfl_report_elf(dwfl, path, path, -1, 0, false);
  if (dwfl_report_end(dwfl, NULL, NULL) == 0 && *module != NULL) return dwfl;
  dwfl_end(dwfl);
  return NULL;
}

static struct file *find_file(struct cs_elfsyms *syms, const char *path) {
  for (size_t i = 0; i < syms->count; i++) {
    if (strcmp(syms->files[i].path, path) == 0) return &syms->files[i];
  }
  syms->files = cs_grow(syms->files, syms->count, &syms->capacity, sizeof *syms->files);
  struct file *file = &syms->files[syms->count++];
  *file = (struct file){cs_allocate(strlen(path) + 1), NULL, NULL};
  memcpy(file->path, path, strlen(path));
  file->dwfl = open_file(path, &file->module);
  return file;
}

// "__libc_start_main@@GLIBC_2.34", "_ZN3fooEv": as people write it.
static const char *readable(struct cs_elfsyms *syms, const char *name) {
  const char *version = strchr(name, '@');
  free(syms->readable);
  syms->readable = version != NULL ? strndup(name, (size_t)(version - name)) : strdup(name);
  if (syms->readable == NULL) return name;
  if (syms->demangle == NULL || strncmp(name, "_Z", 2) != 0) return syms->readable;
  int status = -1;
  char *demangled = syms->demangle(syms->readable, NULL, NULL, &status);
  if (status != 0 || demangled == NULL) return syms->readable;
  free(syms->readable);
  return syms->readable = demangled;
}

const char *cs_elfsyms_find(struct cs_elfsyms *syms, const char *path, uint64_t vaddr) {
  struct file *file = find_file(syms, path);
  if (file->dwfl == NULL) return NULL;
  GElf_Sym symbol;
  GElf_Off offset;
  const char *name = dwfl_module_addrinfo(file->module, vaddr, &offset, &symbol, NULL, NULL, NULL);
  if (name == NULL || name[0] == '\0' || offset >= symbol.st_size) return NULL;
  return readable(syms, name);
}

void cs_elfsyms_free(struct cs_elfsyms *syms) {
  for (size_t i = 0; i < syms->count; i++) {
    if (syms->files[i].dwfl != NULL) dwfl_end(syms->files[i].dwfl);
    free(syms->files[i].path);
  }
  free(syms->files);
  free(syms->readable);
  free(syms);
}
