// SPDX-License-Identifier: MIT
// The signals are blocked in the creating thread, from which the new one inherits the mask. Any
// thread. Signal-safe: no.
#include "base/own_thread.h"

#include <signal.h>
#include <stddef.h>

int cs_own_thread_begin(pthread_t *thread, void *(*main)(void *data), void *data) {
  sigset_t all, before;
  pthread_attr_t attr;
  (void)sigfillset(&all);
  (void)pthread_attr_init(&attr);
  (void)pthread_attr_setstacksize(&attr, CS_OWN_STACK);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(thread, &attr, main, data);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attr);
  return failed;
}

int cs_own_thread_start(void *(*main)(void *unused)) {
  pthread_t thread;
  int failed = cs_own_thread_begin(&thread, main, NULL);
  if (failed == 0) (void)pthread_detach(thread);
  return failed;
}
