// SPDX-License-Identifier: MIT
// The hand-over between the program under test and the profiler's native thread, by one atomic
// word. Threads: oracle_scene_* on any managed thread, scene_run on the native one. Signal-safe:
// no.
#include "scene.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { NONE, RUNNING, DONE, ENDED };
static uint32_t state, ran;
static struct scene current;

ORACLE_EXPORT void oracle_scene_prepare(void);
ORACLE_EXPORT void oracle_scene_begin(const char *name, const char *argument);
ORACLE_EXPORT void oracle_scene_end(void);
ORACLE_EXPORT int oracle_scene_done(void);

void oracle_scene_prepare(void) {
  __atomic_store_n(&state, NONE, __ATOMIC_RELEASE);
}

void oracle_scene_begin(const char *name, const char *argument) {
  // A scene's place may be passed twice (a multicast delegate): the first time counts.
  if (strcmp(current.name, name) == 0) return;
  current.tid = oracle_gettid();
  if (FAILED(oracle_info->lpVtbl->GetCurrentThreadID(oracle_info, &current.target))) {
    oracle_fail("%s: GetCurrentThreadID failed", name);
    return;
  }
  snprintf(current.argument, sizeof(current.argument), "%s", argument);
  snprintf(current.name, sizeof(current.name), "%s", name);
  stack_by_clr(&current.at_begin, 0, COR_PRF_SNAPSHOT_DEFAULT);
  __atomic_store_n(&state, RUNNING, __ATOMIC_RELEASE);
}

void oracle_scene_end(void) {
  __atomic_store_n(&state, ENDED, __ATOMIC_RELEASE);
}

int oracle_scene_done(void) {
  uint32_t now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
  return now == DONE ? 1 : now == ENDED ? 2 : 0;
}

uint32_t scene_count(void) {
  return ran;
}

static void *run_scenes(void *unused) {
  (void)unused;
  for (;;) {
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == RUNNING) {
      scene_run(&current);
      ran++;
      __atomic_store_n(&state, DONE, __ATOMIC_RELEASE);
    }
    usleep(500);
  }
  return NULL;
}

void scene_start(void) {
  pthread_t thread;
  int error = pthread_create(&thread, NULL, run_scenes, NULL);
  ORACLE_CHECK(error == 0, "pthread_create: %s", strerror(error));
}
