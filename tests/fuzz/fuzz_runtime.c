// SPDX-License-Identifier: MIT
// The runtime's image in another process: program headers, exported symbols, data, the sorted index
// of its unwind data, and the table for its debugger. The process is this one; the input is mapped
// from a file that has the runtime's name.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "remote/private.h"

enum { MAPPED = 1 << 16 };
static uint8_t *image;

static bool read_process(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  return cs_remote_read((struct cs_remote *)(uintptr_t)mem, address, dst, len);
}

static void map_image(void) {
  char folder[] = "/tmp/fuzz-runtime-XXXXXX", path[64];
  if (mkdtemp(folder) == NULL) abort();
  (void)snprintf(path, sizeof path, "%s/libcoreclr.so", folder);
  FILE *file = fopen(path, "w+e");
  if (file == NULL || ftruncate(fileno(file), MAPPED) != 0) abort();
  image = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  if (image == MAP_FAILED) abort();
  (void)fclose(file);
  if (unlink(path) != 0 || rmdir(folder) != 0) abort();
}

static struct cs_remote *open_self(void) {
  static struct cs_remote *remote;
  if (remote != NULL) return remote;
  map_image();
  remote = calloc(1, sizeof *remote);
  if (remote == NULL || !cs_page_cache_init(&remote->cache, &remote->process)) abort();
  remote->pid = getpid();
  cs_process_memory_init(&remote->process, remote->pid);
  remote->world.mem = (struct cs_mem){.read = read_process, .guard_works = true};
  return remote;
}

// The collector's methods: found if nothing is wrong, else assumed to be found.
static void ask_the_collector(struct cs_remote *remote, uint64_t table) {
  struct cs_layout *l = &remote->world.layout;
  l->runtime_major = 10;
  l->coreclr_begin = (uint64_t)(uintptr_t)image;
  l->coreclr_end = l->coreclr_begin + MAPPED;
  l->thread_store = l->coreclr_begin + 64;
  l->landmarks.finalizer_thread = l->suspension_thread = l->landmarks.app_domain =
      l->landmarks.system_domain = l->landmarks.thread_ids = l->landmarks.object_class = 1;
  remote->debug_table = table;
  (void)cs_remote_gc_background(remote);
  (void)cs_remote_gc_method(remote, l->coreclr_begin + 0x1000);
  remote->gc_methods.known = true;
  for (uint64_t at = 0; at < MAPPED; at += MAPPED / 8)
    (void)cs_remote_gc_method(remote, l->coreclr_begin + at);
  struct cs_remote_holder holder;
  (void)cs_remote_holder(remote, &holder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static size_t used;
  struct cs_remote *remote = open_self();
  struct cs_contract_place place;
  struct cs_error err;
  if (size > MAPPED) return 0;
  memset(image, 0, used);
  if (size > 0) memcpy(image, data, size);
  used = size;
  cs_remote_invalidate(remote);
  if (cs_remote_find_runtime(remote, &place, &err) && place.descriptor != 0)
    (void)cs_contract_read_at(&remote->world.layout, &remote->world.mem, &place, &err);
  ask_the_collector(remote,
                    remote->debug_table != 0 ? remote->debug_table : (uintptr_t)image + 512);
  return 0;
}
