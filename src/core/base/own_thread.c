// SPDX-License-Identifier: MIT
// The signals are blocked in the creating thread, from which the new one inherits the mask. Any
// thread. Signal-safe: no.
#include "base/own_thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"

enum { MOST = 16 };  // at a time; there are up to four

static uint32_t running[MOST];  // their ids; 0: free. Atomic

struct start {
  void *(*main)(void *data);
  void *data;
};

static uint32_t *note_start(void) {
  for (unsigned i = 0; i < MOST; i++) {
    uint32_t none = 0;
    if (cs_cas(&running[i], &none, (uint32_t)gettid())) return &running[i];
  }
  return NULL;
}

static void *run(void *data) {
  struct start start = *(struct start *)data;
  free(data);
  uint32_t *place = note_start();
  void *result = start.main(start.data);
  if (place != NULL) cs_store_release(place, 0u);
  return result;
}

bool cs_own_thread_is(uint32_t tid) {
  bool found = false;
  for (unsigned i = 0; i < MOST; i++) found = found || cs_load_acquire(&running[i]) == tid;
  return found;
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
  int failed = pthread_create(thread, &attr, run, start);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attr);
  if (failed != 0) free(start);
  return failed;
}

int cs_own_thread_start(void *(*main)(void *unused)) {
  pthread_t thread;
  int failed = cs_own_thread_begin(&thread, main, NULL);
  if (failed == 0) (void)pthread_detach(thread);
  return failed;
}
