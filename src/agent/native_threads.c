// SPDX-License-Identifier: MIT
// Threads of the process that the runtime has no Thread for: its garbage collector's, those of
// foreign libraries. CPU mode samples them too. The agent's thread only. Signal-safe: no.
//
// Their stacks are not ours to ask for: the C library's own record of a thread may go with the
// thread at any moment. So the stack is the mapping that the stack pointer lies in; /proc tells the
// pointer of a thread that sleeps, and a first sample tells it of one that runs (drain.c).
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"

// /proc/self/task/TID/syscall: "202 0x7f.. (six arguments) SP PC", or "running".
static bool sleeping_sp(uint32_t tid, uint64_t *sp) {
  char path[64], line[256];
  (void)snprintf(path, sizeof path, "/proc/self/task/%u/syscall", tid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  bool ok = fgets(line, sizeof line, file) != NULL;
  (void)fclose(file);
  char *pc = ok ? strrchr(line, ' ') : NULL;
  if (pc == NULL) return false;
  *pc = '\0';
  char *at = strrchr(line, ' ');
  *sp = at != NULL ? strtoull(at, NULL, 16) : 0;
  return *sp != 0;
}

static void learn_stack(struct cs_thread *entry, uint32_t tid) {
  struct cs_stack stack;
  uint64_t sp;
  if (cs_load_acquire(&entry->stack.hi) != 0 || !sleeping_sp(tid, &sp)) return;
  if (!cs_stack_around(sp, &stack)) return;
  entry->stack.lo = stack.lo;
  cs_store_release(&entry->stack.hi, stack.hi);
}

static bool mark_seen(struct cs_agent_thread *t, void *data) {
  uint32_t tid = *(const uint32_t *)data;
  if (t->clr_thread != 0 || t->tid != tid) return true;
  t->seen = true;
  return false;
}

static void look_at(uint32_t tid) {
  if (tid == 0 || tid == cs_load_acquire(&cs_agent.tid)) return;
  struct cs_thread *entry = cs_registry_find_tid(tid);
  if (entry != NULL && entry->clr_thread != 0) return;  // managed
  if (entry == NULL) {
    cs_threads_add_native(tid);
    entry = cs_registry_find_tid(tid);
  } else {
    cs_threads_visit(mark_seen, &tid);
  }
  if (entry != NULL && entry->clr_thread == 0) learn_stack(entry, tid);
}

void cs_native_threads_scan(void) {
  if ((cs_agent.modes & CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU)) == 0) return;
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == NULL) return;
  const struct dirent *entry;
  while ((entry = readdir(tasks)) != NULL) look_at((uint32_t)strtoul(entry->d_name, NULL, 10));
  (void)closedir(tasks);
  cs_threads_sweep_native();
}
