// SPDX-License-Identifier: MIT
// A stopped thread of another process: its registers, the bounds of its stack from the
// process's maps, and the runtime's Thread by its OS id. Invariant: a thread's own stack is the
// mapping that contains its thread pointer (the C library puts that at the top), the first thread's
// the one that the kernel marks; any other mapping that contains the sp is an alternate stack. One
// thread at a time. Signal-safe: no.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/prefix.h"
#include "remote/private.h"

enum { MAX_THREADS = 65536 };  // in the runtime's list; ends the search in a cyclic one

struct listing {
  struct cs_remote *remote;
  bool no_memory;
};

static bool add_area(const struct cs_mapping *m, void *arg) {
  struct listing *listing = arg;
  struct cs_remote *remote = listing->remote;
  if (!m->writable || !m->readable) return true;
  struct cs_area *areas =
      cs_grow_or_not(remote->areas, remote->area_count, &remote->area_capacity, sizeof *areas);
  listing->no_memory = areas == NULL;
  if (areas == NULL) return false;
  remote->areas = areas;
  areas[remote->area_count++] = (struct cs_area){m->begin, m->end, strcmp(m->path, "[stack]") == 0};
  return true;
}

// Done once per stop: a process may have thousands of mappings, and is stopped while they are
// listed.
static bool list_areas(struct cs_remote *remote, struct cs_error *err) {
  if (remote->areas_generation == remote->cache.generation) return true;
  struct listing listing = {remote, false};
  remote->area_count = 0;
  if (!cs_maps_each(&remote->maps, remote->pid, add_area, &listing, err)) return false;
  if (listing.no_memory) return cs_error_set(err, "out of memory for the mappings");
  remote->areas_generation = remote->cache.generation;
  return true;
}

static bool find_stack(struct cs_remote *remote, struct cs_remote_thread *thread,
                       struct cs_error *err) {
  struct cs_stack stack = {.lo = 0};
  uint64_t sp = thread->regs.r[CS_SP], sp_lo = 0, sp_hi = 0;
  bool is_first = thread->tid == remote->pid;
  if (!list_areas(remote, err)) return false;
  for (size_t i = 0; i < remote->area_count; i++) {
    const struct cs_area *area = &remote->areas[i];
    bool own = is_first
                   ? area->first_stack
                   : thread->thread_pointer >= area->begin && thread->thread_pointer < area->end;
    if (own) {
      stack.lo = area->begin;
      stack.hi = area->end;
    }
    if (sp >= area->begin && sp < area->end) {
      sp_lo = area->begin;
      sp_hi = area->end;
    }
  }
  if (stack.hi == 0) {  // no thread pointer: no C library created the thread
    stack.lo = sp_lo;
    stack.hi = sp_hi;
  } else if (sp_lo != stack.lo) {
    stack.alt_lo = sp_lo;
    stack.alt_hi = sp_hi;
  }
  thread->stack = stack;
  return true;
}

// The ids of a thread (NSpid in its status), from the one in our PID namespace to the one in its
// own. Returns how many there are.
static unsigned numbers_of(int pid, int tid, int *last) {
  char path[64], line[256];
  unsigned count = 0;
  *last = tid;
  (void)snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, tid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL) {
    if (!cs_has_prefix(line, "NSpid:")) continue;
    for (char *at = line + 6, *end; (at = strchr(at, '\t')) != NULL; at = end, count++) {
      long number = strtol(at, &end, 10);
      if (end == at) break;
      *last = (int)number;
    }
    break;
  }
  (void)fclose(file);
  return count;
}

bool cs_remote_in_namespace(int pid) {
  int last;
  return numbers_of(pid, pid, &last) > 1;
}

int cs_remote_own_tid(const struct cs_remote *remote, int tid) {
  int last = tid;
  if (remote->own_namespace) (void)numbers_of(remote->pid, tid, &last);
  return last;
}

// Returns the runtime's Thread object for the OS thread, or 0 if there is none.
static uint64_t find_clr_thread(struct cs_remote *remote, int tid) {
  const struct cs_layout *layout = &remote->world.layout;
  const struct cs_mem *mem = &remote->world.mem;
  uint32_t wanted = (uint32_t)cs_remote_own_tid(remote, tid), os_id;
  uint64_t store, link;
  if (!cs_mem_u64(mem, layout->thread_store, &store) || store == 0 ||
      !cs_mem_u64(mem, store + layout->thread_store_fields.first_link, &link))
    return 0;
  for (int i = 0; i < MAX_THREADS && link != 0; i++) {
    uint64_t thread = link - layout->thread.link_next;
    if (!cs_mem_u32(mem, thread + layout->thread.os_id, &os_id)) return 0;
    if (os_id == wanted) return thread;
    if (!cs_mem_u64(mem, link, &link)) return 0;
  }
  return 0;
}

bool cs_remote_thread(struct cs_remote *remote, int tid, struct cs_remote_thread *thread,
                      struct cs_error *err) {
  *thread = (struct cs_remote_thread){.tid = tid};
  if (!cs_remote_registers(tid, &thread->regs, &thread->thread_pointer, &thread->call))
    return cs_error_set(
        err, "the registers of thread %d cannot be read: %s", tid,
        errno == ESRCH ? "it is not stopped by this tracer" : strerrorname_np(errno));
  if (!find_stack(remote, thread, err)) return false;
  thread->clr_thread = find_clr_thread(remote, tid);
  return true;
}
