// SPDX-License-Identifier: MIT
// Threads of the process that the runtime has no Thread for: its garbage collector's, those of
// foreign libraries. CPU mode samples them too. The agent's thread only. Signal-safe: no.
#include <dirent.h>
#include <stdlib.h>

#include "sampling/agent.h"

static void look_at(uint32_t tid) {
  if (tid == 0 || tid == cs_load_acquire(&cs_agent.tid)) return;
  struct cs_thread *entry = cs_registry_find_tid(tid);
  if (entry != NULL && entry->clr_thread != 0) return;  // managed
  if (entry == NULL)
    cs_threads_add_native(tid);
  else
    cs_threads_see_native(tid);
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
