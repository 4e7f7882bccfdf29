// SPDX-License-Identifier: MIT
// The state of the component, and threads of which no callback has told us: those that existed
// before an attach, and those that began or ended between a detach and the next attach. Not for
// handlers.
//
// Invariant: a thread is forgotten here only if it has ended while no profiler of ours got
// callbacks; this runs before the callbacks begin again.
#include "threads/threads.h"

#include <stdlib.h>

#include "threads/native_stack.h"
#include "threads/registry.h"
#include "threads/sleeper.h"

struct cs_threads cs_threads;

struct known {
  ThreadID id;
  DWORD tid;
};

// Calls `visit` for each thread that the runtime knows. Returns false if the runtime refuses.
static bool visit_threads(ICorProfilerInfo15 *info,
                          void (*visit)(const struct known *thread, void *data), void *data) {
  ICorProfilerThreadEnum *threads = NULL;
  struct known known;
  ULONG got = 0;
  // At the program's start the call may be refused: then callbacks report all threads.
  if (info == NULL || info->lpVtbl->EnumThreads(info, &threads) != S_OK || threads == NULL)
    return false;
  while (threads->lpVtbl->Next(threads, 1, &known.id, &got) == S_OK && got == 1) {
    known.tid = 0;
    if (info->lpVtbl->GetThreadInfo(info, known.id, &known.tid) == S_OK && known.tid != 0)
      visit(&known, data);
  }
  threads->lpVtbl->Release(threads);
  return true;
}

static void adopt(const struct known *thread, void *data) {
  (void)data;
  struct cs_thread *entry = cs_registry_attached(thread->id, thread->tid);
  if (entry != NULL) cs_thread_learn_stack(entry, thread->tid);
}

void cs_registry_adopt(ICorProfilerInfo15 *info) {
  (void)visit_threads(info, adopt, NULL);
}

void cs_registry_rest(void) {
  for (uint32_t i = 0; i < cs_registry_count(); i++) cs_sleeper_forget(cs_registry_at(i));
}

// ---- Threads that have ended ----

static void mark(const struct known *thread, void *data) {
  bool *living = data;
  struct cs_thread *entry = cs_registry_find(thread->id);
  if (entry != NULL && entry->tid == thread->tid) living[entry->index] = true;
}

void cs_registry_forget_ended(ICorProfilerInfo15 *info) {
  uint32_t count = cs_registry_count();
  bool *living = count > 0 ? calloc(count, sizeof *living) : NULL;
  if (living == NULL || !visit_threads(info, mark, living)) {
    free(living);
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    struct cs_thread *thread = cs_registry_at(i);
    if (thread->clr_thread != 0 && !living[i]) cs_registry_destroyed_entry(thread);
  }
  free(living);
}
