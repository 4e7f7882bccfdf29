// SPDX-License-Identifier: MIT
// The signals are blocked in the creating thread, from which the new one inherits the mask. Any
// thread. Signal-safe: no.
#include "base/own_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

int cs_own_thread_start(void *(*main)(void *unused)) {
  sigset_t all, before;
  pthread_attr_t attr;
  pthread_t thread;
  (void)sigfillset(&all);
  (void)pthread_attr_init(&attr);
  (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&thread, &attr, main, NULL);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attr);
  return failed;
}
