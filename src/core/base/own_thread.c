// SPDX-License-Identifier: MIT
// The signals are blocked in the creating thread, from which the new one inherits the mask. Any
// thread. Signal-safe: no.
#include "base/own_thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

enum { MOST = 16 };  // at a time; there are up to four

// Atomic. A place is kept after `main` has returned, until the kernel knows the thread no longer.
static struct place {
  uint32_t tid;  // 0: free
  uint32_t ended;
} places[MOST];
static uint32_t starting;  // threads that have no place yet. Atomic

struct start {
  void *(*main)(void *data);
  void *data;
};

void cs_own_threads_sweep(void) {
  for (unsigned i = 0; i < MOST; i++) {
    uint32_t tid = cs_load_acquire(&places[i].tid);
    if (tid == 0 || cs_load_acquire(&places[i].ended) == 0) continue;
    if (syscall(SYS_tgkill, getpid(), tid, 0) == 0) continue;
    cs_store_release(&places[i].ended, 0u);
    (void)cs_cas(&places[i].tid, &tid, 0u);  // unless another sweep has done it
  }
}

static struct place *note_start(void) {
  cs_own_threads_sweep();
  for (unsigned i = 0; i < MOST; i++) {
    uint32_t none = 0;
    if (cs_cas(&places[i].tid, &none, (uint32_t)gettid())) return &places[i];
  }
  return NULL;
}

static void *run(void *data) {
  struct start start = *(struct start *)data;
  free(data);
  struct place *place = note_start();
  (void)cs_add_seq(&starting, -1u);
  void *result = start.main(start.data);
  if (place != NULL) cs_store_release(&place->ended, 1u);
  return result;
}

bool cs_own_thread_is(uint32_t tid) {
  bool found = false;
  for (unsigned i = 0; i < MOST; i++) found = found || cs_load_acquire(&places[i].tid) == tid;
  return found;
}

bool cs_own_thread_may_be(uint32_t tid) {
  return cs_load_acquire(&starting) != 0 || cs_own_thread_is(tid);
}

int cs_own_thread_begin(pthread_t *thread, void *(*main)(void *data), void *data) {
  sigset_t all, before;
  pthread_attr_t attr;
  struct start *start = malloc(sizeof *start);
  if (start == NULL) return ENOMEM;
  *start = (struct start){main, data};
  (void)sigfillset(&all);
  (void)pthread_attr_init(&attr);
  (void)pthread_attr_setstacksize(&attr, CS_OWN_STACK);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  (void)cs_add_seq(&starting, 1u);
  int failed = pthread_create(thread, &attr, run, start);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attr);
  if (failed != 0) (void)cs_add_seq(&starting, -1u);
  if (failed != 0) free(start);
  return failed;
}

int cs_own_thread_start(void *(*main)(void *unused)) {
  pthread_t thread;
  int failed = cs_own_thread_begin(&thread, main, NULL);
  if (failed == 0) (void)pthread_detach(thread);
  return failed;
}
