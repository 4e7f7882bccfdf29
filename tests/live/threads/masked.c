// SPDX-License-Identifier: MIT
// A library's own thread, "n-masked", which blocks all signals, as workers of native libraries do, and computes
// (tests/apps/Masked).
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

static pthread_t thread;
static int64_t limit, cpu, wall;
static volatile unsigned spent;

__attribute__((visibility("default"))) int masked_start(int64_t limit_ns);
__attribute__((visibility("default"))) int64_t masked_join(int64_t *wall_ns);

static int64_t now(clockid_t clock) {
  struct timespec t;
  (void)clock_gettime(clock, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void *run(void *unused) {
  sigset_t all;
  int64_t begin = now(CLOCK_MONOTONIC);
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
  (void)pthread_setname_np(pthread_self(), "n-masked");
  while (now(CLOCK_THREAD_CPUTIME_ID) < limit)
    for (int i = 0; i < 100000; i++) spent = spent * 31 + 7;
  cpu = now(CLOCK_THREAD_CPUTIME_ID);
  wall = now(CLOCK_MONOTONIC) - begin;
  return unused;
}

int masked_start(int64_t limit_ns) {
  limit = limit_ns;
  return pthread_create(&thread, NULL, run, NULL);
}

// Returns its CPU time.
int64_t masked_join(int64_t *wall_ns) {
  (void)pthread_join(thread, NULL);
  *wall_ns = wall;
  return cpu;
}
