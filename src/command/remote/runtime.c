// SPDX-License-Identifier: MIT
// Finds CoreCLR in another process: its mapping by the name of its file, its descriptor by its
// exported symbols. They are read from the process's memory, because the file may have been deleted
// or replaced, or be in another mount namespace. Invariant: whatever the ELF structures point to is
// read with a guard, and an address counts only inside the runtime's own mapping. One thread at a
// time. Signal-safe: no.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "native/dynamic.h"
#include "remote/private.h"

enum { MAX_PROGRAM_HEADERS = 64, MAX_PATH_BYTES = 4096 };
enum { MAX_DATA = 4, MAX_DATA_BYTES = 16 << 20 };

struct image {
  uint64_t base;  // where the file's first byte is mapped, 0: not found
  uint64_t begin, end, bias;
  struct cs_dynamic dynamic;
  uint64_t unwind_index;  // its .eh_frame_hdr; 0: it has none
  unsigned data_count;
  struct {
    uint64_t begin, end;
  } data[MAX_DATA];  // the parts of its writable segments that come from the file
  char path[MAX_PATH_BYTES];
};

struct search {
  struct image coreclr, executable;
  char exe[MAX_PATH_BYTES];
};

static bool visit(const struct cs_mapping *mapping, void *arg) {
  struct search *search = arg;
  struct image *image = NULL;
  if (mapping->offset != 0 || mapping->inode == 0) return true;
  if (cs_path_is(mapping->path, "libcoreclr.so"))
    image = &search->coreclr;
  else if (strcmp(mapping->path, search->exe) == 0)
    image = &search->executable;
  if (image == NULL || image->base != 0) return true;
  image->base = mapping->begin;
  (void)snprintf(image->path, sizeof image->path, "%s", mapping->path);
  return true;
}

// Fills in everything except base and path. Returns false if it is no ELF image with a symbol
// table.
static bool read_image(struct cs_remote *remote, struct image *image) {
  Elf64_Ehdr eh;
  Elf64_Phdr ph[MAX_PROGRAM_HEADERS];
  if (!cs_remote_read(remote, image->base, &eh, sizeof eh) ||
      memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_phentsize != sizeof ph[0] ||
      eh.e_phnum > MAX_PROGRAM_HEADERS || eh.e_phoff > CS_PAGE_BYTES ||
      !cs_remote_read(remote, image->base + eh.e_phoff, ph, eh.e_phnum * sizeof ph[0]))
    return false;
  const Elf64_Phdr *dynamic = NULL;
  image->begin = UINT64_MAX;
  for (unsigned i = 0; i < eh.e_phnum; i++)
    if (ph[i].p_type == PT_LOAD && ph[i].p_offset == 0) image->bias = image->base - ph[i].p_vaddr;
  for (unsigned i = 0; i < eh.e_phnum; i++) {
    if (ph[i].p_type == PT_DYNAMIC) dynamic = &ph[i];
    if (ph[i].p_type == PT_GNU_EH_FRAME) image->unwind_index = image->bias + ph[i].p_vaddr;
    if (ph[i].p_type != PT_LOAD) continue;
    uint64_t begin = image->bias + ph[i].p_vaddr, end = begin + ph[i].p_memsz;
    if (begin < image->begin) image->begin = begin;
    if (end > image->end) image->end = end;
    if ((ph[i].p_flags & PF_W) == 0 || image->data_count == MAX_DATA) continue;
    image->data[image->data_count].begin = begin;
    image->data[image->data_count++].end = begin + ph[i].p_filesz;
  }
  return dynamic != NULL &&
         cs_dynamic_read(&remote->process, image->bias, image->bias + dynamic->p_vaddr,
                         dynamic->p_memsz, &image->dynamic) &&
         image->dynamic.gnu_hash != 0;
}

// Returns the address of an exported symbol of the image, or 0 if there is none of that name.
static uint64_t find_symbol(struct cs_remote *remote, const struct image *image, const char *name) {
  uint64_t at = cs_dynamic_find(&remote->process, &image->dynamic, name);
  return at >= image->begin && at < image->end ? at : 0;
}

static struct cs_runtime_version version_of(const char *path) {
  struct cs_runtime_version v = {0, 0, 0};
  char folder[MAX_PATH_BYTES];
  (void)snprintf(folder, sizeof folder, "%s", path);
  char *slash = strrchr(folder, '/');
  if (slash == NULL) return v;
  *slash = '\0';
  slash = strrchr(folder, '/');
  if (slash == NULL) return v;
  unsigned major, minor, build;
  if (sscanf(slash + 1, "%5u.%5u.%5u", &major, &minor, &build) != 3 || major > UINT16_MAX ||
      minor > UINT16_MAX || build > UINT16_MAX)
    return v;
  return (struct cs_runtime_version){(uint16_t)major, (uint16_t)minor, (uint16_t)build};
}

// The runtime has "@(#)Version 10.0.1226.42308 @Commit: ..." in its data, where 1226 means patch 12
// of the year 26. In a self-contained or single-file program, whose runtime is in no directory
// named after a version, nothing else shows the version.
static bool version_in(const char *text, size_t size, struct cs_runtime_version *out) {
  static const char mark[] = "@(#)Version ";
  enum { MARK = sizeof mark - 1, MOST = 48, PATCH = 100 };
  for (const char *at = text; (size_t)(text + size - at) > MARK; at++) {
    char copy[MOST];
    unsigned major, minor, build;
    at = memchr(at, mark[0], (size_t)(text + size - at) - MARK);
    if (at == NULL) return false;
    if (memcmp(at, mark, MARK) != 0) continue;
    (void)snprintf(copy, sizeof copy, "%.*s", (int)(text + size - at - MARK), at + MARK);
    if (sscanf(copy, "%5u.%5u.%7u.", &major, &minor, &build) != 3 || major > UINT16_MAX ||
        minor > UINT16_MAX || build / PATCH > UINT16_MAX)
      continue;
    *out = (struct cs_runtime_version){(uint16_t)major, (uint16_t)minor, (uint16_t)(build / PATCH)};
    return true;
  }
  return false;
}

static struct cs_runtime_version version_by_data(struct cs_remote *remote,
                                                 const struct image *image) {
  struct cs_runtime_version version = {0, 0, 0};
  for (unsigned i = 0; i < image->data_count && version.major == 0; i++) {
    size_t size = (size_t)(image->data[i].end - image->data[i].begin);
    char *bytes = size <= MAX_DATA_BYTES ? malloc(size) : NULL;
    if (bytes != NULL && cs_remote_read(remote, image->data[i].begin, bytes, size))
      (void)version_in(bytes, size, &version);
    free(bytes);
  }
  return version;
}

// The executable itself may be the runtime: a single-file application.
static bool check_executable(struct cs_remote *remote, struct image *exe, uint64_t *descriptor,
                             struct cs_error *err) {
  static const char none[] = "there is no CoreCLR in process %d (%s): %s";
  if (exe->base == 0 || !read_image(remote, exe))
    return cs_error_set(err, none, remote->pid, exe->path, "no libcoreclr.so is mapped");
  *descriptor = find_symbol(remote, exe, CS_CORECLR_SYMBOL);
  if (find_symbol(remote, exe, "DotNetRuntimeDebugHeader") != 0)
    return cs_error_set(err, none, remote->pid, exe->path, "it was compiled with Native AOT");
  if (*descriptor != 0 || find_symbol(remote, exe, "DotNetRuntimeInfo") != 0) return true;
  return cs_error_set(err, none, remote->pid, exe->path,
                      "no libcoreclr.so is mapped, and it is not a single-file .NET application");
}

bool cs_remote_find_runtime(struct cs_remote *remote, struct cs_contract_place *place,
                            struct cs_error *err) {
  static struct search search;  // too large for a stack; one thread at a time
  char link[64];
  memset(&search, 0, sizeof search);
  (void)snprintf(link, sizeof link, "/proc/%d/exe", remote->pid);
  if (readlink(link, search.exe, sizeof search.exe - 1) < 0) search.exe[0] = '\0';
  (void)snprintf(search.executable.path, sizeof search.executable.path, "%s", search.exe);
  if (!cs_maps_each(&remote->maps, remote->pid, visit, &search, err)) return false;
  struct image *runtime = &search.coreclr;
  *place = (struct cs_contract_place){.descriptor = 0};
  if (runtime->base == 0) {
    runtime = &search.executable;
    if (!check_executable(remote, runtime, &place->descriptor, err)) return false;
  } else if (read_image(remote, runtime)) {
    place->descriptor = find_symbol(remote, runtime, CS_CORECLR_SYMBOL);
  } else {
    return cs_error_set(err, "the runtime of process %d (%s) is not mapped as its headers say",
                        remote->pid, runtime->path);
  }
  remote->unwind_index = runtime->unwind_index;
  remote->debug_table = place->debug_table = find_symbol(remote, runtime, "g_dacTable");
  place->begin = runtime->begin;
  place->end = runtime->end;
  place->version = version_of(runtime->path);
  if (place->version.major == 0) place->version = version_by_data(remote, runtime);
  return true;
}
