// SPDX-License-Identifier: MIT
// Opens another process for the walk: its memory as a source, its runtime's layout, its native
// images. Invariant: a struct cs_remote that was returned has all three. One thread at a time.
// Signal-safe: no.
#include "remote/remote.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/rights.h"
#include "native/native.h"
#include "remote/private.h"

// The world is a struct cs_remote's first member, and its mem the world's.
static bool read_remote(const struct cs_mem *mem, uint64_t address, void *dst, size_t len) {
  struct cs_remote *remote = (struct cs_remote *)(uintptr_t)mem;
  return cs_page_cache_read(&remote->cache, address, dst, len);
}
_Static_assert(offsetof(struct cs_remote, world) == 0 && offsetof(struct cs_world, mem) == 0,
               "the source of memory leads to its process");

// Tries a read that needs nothing but permission, to explain a refusal.
static bool check_access(int pid, struct cs_error *err) {
  uint8_t byte;
  struct iovec local = {&byte, 1}, remote = {NULL, 1};
  if (kill(pid, 0) != 0 && errno == ESRCH) return cs_error_set(err, "there is no process %d", pid);
  if (process_vm_readv(pid, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT) return true;
  struct cs_error why;
  if (errno == EPERM && !cs_rights_lacking(pid, &why))
    return cs_error_set(err, "the memory of process %d may not be read: %s", pid, why.text);
  if (errno == ESRCH) return cs_error_set(err, "process %d has ended", pid);
  return cs_error_set(err, "the memory of process %d cannot be read: %s", pid,
                      strerrorname_np(errno));
}

// Finds the fields for hijacked return addresses in a Thread that was never hijacked; the
// finalizer's nearly always is one.
static void find_hijack(struct cs_remote *remote) {
  enum { MAX_THREADS = 65536 };
  struct cs_layout *layout = &remote->world.layout;
  const struct cs_mem *mem = &remote->world.mem;
  uint64_t store, link;
  if (!cs_mem_u64(mem, layout->thread_store, &store) ||
      !cs_mem_u64(mem, store + layout->thread_store_fields.first_link, &link))
    return;
  for (int i = 0; i < MAX_THREADS && link != 0 && layout->hijack.hijack_slot == 0; i++) {
    cs_contract_find_hijack(layout, mem, link - layout->thread.link_next);
    if (!cs_mem_u64(mem, link, &link)) return;
  }
}

static bool open_all(struct cs_remote *remote, struct cs_error *err) {
  struct cs_contract_place place;
  if (!cs_page_cache_init(&remote->cache, &remote->process))
    return cs_error_set(err, "out of memory for the pages of process %d", remote->pid);
  if (!check_access(remote->pid, err) || !cs_remote_find_runtime(remote, &place, err) ||
      !cs_contract_read_at(&remote->world.layout, &remote->world.mem, &place, err))
    return false;
  find_hijack(remote);
  remote->own_namespace = cs_remote_in_namespace(remote->pid);
  remote->native = cs_native_new(remote->pid);
  if (remote->native != NULL) cs_remote_refresh_images(remote);
  if (remote->world.images != NULL) return true;
  return cs_error_set(err, "the native images of process %d cannot be read", remote->pid);
}

struct cs_remote *cs_remote_open(int pid, struct cs_error *err) {
  struct cs_remote *remote = calloc(1, sizeof *remote);
  if (remote == NULL) {
    (void)cs_error_set(err, "out of memory");
    return NULL;
  }
  remote->pid = pid;
  cs_remote_set_timeout(remote, 2000000000);
  remote->world.mem = (struct cs_mem){.read = read_remote, .pid = pid, .guard_works = true};
  cs_process_memory_init(&remote->process, pid);
  if (open_all(remote, err)) return remote;
  cs_remote_close(remote);
  return NULL;
}

void cs_remote_close(struct cs_remote *remote) {
  if (remote == NULL) return;
  cs_remote_resume(remote);
  free(remote->areas);
  free(remote->late.tid);
  free(remote->late.signal);
  free(remote->asked.tid);
  free(remote->asked.signal);
  free(remote->stopped.tid);
  free(remote->stopped.signal);
  cs_native_free(remote->native);
  cs_maps_free(&remote->maps);
  cs_page_cache_free(&remote->cache);
  cs_process_memory_close(&remote->process);
  free(remote);
}

const struct cs_world *cs_remote_world(const struct cs_remote *remote) {
  return &remote->world;
}

void cs_remote_version(const struct cs_remote *remote, char text[CS_REMOTE_VERSION_BYTES]) {
  const struct cs_layout *l = &remote->world.layout;
  text[0] = '\0';
  if (l->runtime_major != 0)
    (void)snprintf(text, CS_REMOTE_VERSION_BYTES, "%u.%u.%u", l->runtime_major, l->runtime_minor,
                   l->runtime_build);
}

void cs_remote_refresh_images(struct cs_remote *remote) {
  remote->world.images = cs_native_refresh(remote->native);
  cs_native_retire(remote->native, NULL);
  if (remote->world.layout.hijack.hijack_slot == 0) find_hijack(remote);
}

void cs_remote_walk_begin(struct cs_remote *remote, const struct cs_remote_thread *thread,
                          struct cs_walk *walk) {
  cs_walk_begin(walk, &remote->world, &thread->regs, &thread->stack, thread->clr_thread, 0);
}
