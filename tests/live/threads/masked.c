// SPDX-License-Identifier: MIT
// A library's own thread, "n-masked", which blocks all signals, as workers of native libraries do,
// and computes; and threads that block all signals and wait for them, as daemons do
// (tests/apps/Masked).
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

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

static int waiting;

// How many threads have blocked their signals in masked_wait.
__attribute__((visibility("default"))) int masked_waiting(void);
int masked_waiting(void) {
  return __atomic_load_n(&waiting, __ATOMIC_SEQ_CST);
}

// Until so many ms are over, waits for signals, by sigtimedwait or by a signalfd, 2 ms at a time
// with 5 ms of computing in between, or 100 ms at a time. Returns how many came: nobody sends any.
__attribute__((visibility("default"))) int masked_wait(int by_fd, int computes, int ms);
int masked_wait(int by_fd, int computes, int ms) {
  sigset_t all, before;
  int received = 0;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_BLOCK, &all, &before);
  (void)__atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
  int fd = by_fd ? signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
  for (int64_t until = now(CLOCK_MONOTONIC) + ms * 1000000ll; now(CLOCK_MONOTONIC) < until;) {
    int64_t from = now(CLOCK_THREAD_CPUTIME_ID);
    while (computes && now(CLOCK_THREAD_CPUTIME_ID) < from + 5000000) spent = spent * 31 + 7;
    siginfo_t info = {.si_signo = 0};
    struct signalfd_siginfo from_fd = {.ssi_signo = 0};
    struct timespec timeout = {.tv_nsec = computes ? 2000000 : 100000000};
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (by_fd && poll(&ready, 1, computes ? 2 : 100) == 1 && read(fd, &from_fd, sizeof from_fd) > 0)
      info.si_signo = (int)from_fd.ssi_signo;
    if (!by_fd && sigtimedwait(&all, &info, &timeout) < 0) info.si_signo = 0;
    if (info.si_signo == 0) continue;
    fprintf(stderr, "signal %d, code %d\n", info.si_signo, info.si_code);
    received++;
  }
  if (fd >= 0) (void)close(fd);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  return received;
}

static int waits_ms, wait_computes, waited[2];
static pthread_t waiters[2];

static void *wait_native(void *by_fd) {
  waited[by_fd != NULL] = masked_wait(by_fd != NULL, wait_computes, waits_ms);
  return NULL;
}

__attribute__((visibility("default"))) void masked_waits_start(int computes, int ms);
__attribute__((visibility("default"))) int masked_waits_join(void);

void masked_waits_start(int computes, int ms) {
  waits_ms = ms;
  wait_computes = computes;
  for (int i = 0; i < 2; i++)
    (void)pthread_create(&waiters[i], NULL, wait_native, i ? &waits_ms : NULL);
}

int masked_waits_join(void) {
  for (int i = 0; i < 2; i++) (void)pthread_join(waiters[i], NULL);
  return waited[0] + waited[1];
}
