// SPDX-License-Identifier: MIT
// Finds the runtime by the dynamic loader's list of objects and by dynamic symbols. Invariant: an
// address is accepted as the descriptor's only if it lies in the runtime's own mapping, so that a
// symbol of that name in another library does no harm. Threads: any, at start only, since it takes
// the dynamic loader's lock. Signal-safe: no.
#include "contract/runtime.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"

struct search {
  struct cs_runtime *out;
  bool want_executable;
  bool found;
};

static void take(struct cs_runtime *out, const struct dl_phdr_info *info, const char *path) {
  (void)snprintf(out->path, sizeof out->path, "%s", path);
  out->begin = UINT64_MAX;
  out->end = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
    if (ph->p_type != PT_LOAD) continue;
    uint64_t begin = info->dlpi_addr + ph->p_vaddr, end = begin + ph->p_memsz;
    if (begin < out->begin) out->begin = begin;
    if (end > out->end) out->end = end;
  }
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg) {
  (void)size;
  struct search *search = arg;
  const char *base = cs_file_of(info->dlpi_name);
  if (search->want_executable) {  // the loader lists the executable first, without a name
    take(search->out, info, "");
    search->found = true;
    return 1;
  }
  if (strcmp(base, "libcoreclr.so") != 0) return 0;
  take(search->out, info, info->dlpi_name);
  search->found = true;
  return 1;
}

// In a single-file application the executable exports the runtime's symbols.
static bool is_single_file_host(struct cs_runtime *runtime) {
  ssize_t n = readlink("/proc/self/exe", runtime->path, sizeof runtime->path - 1);
  runtime->path[n > 0 ? n : 0] = '\0';
  runtime->single_file = true;
  if (cs_runtime_descriptor(runtime) != 0) return true;
  // Before .NET 10 a single-file host has no descriptor, but it has this symbol for debuggers.
  uint64_t info = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "DotNetRuntimeInfo");
  return info >= runtime->begin && info < runtime->end;
}

bool cs_runtime_find(struct cs_runtime *out) {
  memset(out, 0, sizeof *out);
  struct search search = {.out = out};
  (void)dl_iterate_phdr(visit, &search);
  if (search.found) return true;
  search.want_executable = true;
  (void)dl_iterate_phdr(visit, &search);
  return search.found && is_single_file_host(out);
}

static uint64_t find_symbol(const struct cs_runtime *runtime, const char *name) {
  void *handle = dlopen(runtime->single_file ? NULL : runtime->path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) return 0;
  uint64_t addr = (uint64_t)(uintptr_t)dlsym(handle, name);
  (void)dlclose(handle);
  return addr >= runtime->begin && addr < runtime->end ? addr : 0;
}

uint64_t cs_runtime_descriptor(const struct cs_runtime *runtime) {
  return find_symbol(runtime, "DotNetRuntimeContractDescriptor");
}

uint64_t cs_runtime_debug_table(const struct cs_runtime *runtime) {
  return find_symbol(runtime, "g_dacTable");
}

bool cs_runtime_path_version(const char *path, uint16_t version[3]) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL) return false;
  const char *dir = slash;
  while (dir > path && dir[-1] != '/') dir--;
  unsigned major, minor, build;
  if (sscanf(dir, "%5u.%5u.%5u", &major, &minor, &build) != 3) return false;
  if (major > UINT16_MAX || minor > UINT16_MAX || build > UINT16_MAX) return false;
  version[0] = (uint16_t)major;
  version[1] = (uint16_t)minor;
  version[2] = (uint16_t)build;
  return true;
}
