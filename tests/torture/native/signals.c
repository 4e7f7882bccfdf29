// SPDX-License-Identifier: MIT
// Signals with a number as data, which the program sends to itself: each of them must arrive, and
// other signals do not count.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "torture.h"

enum { MAGIC = 0x5a000000, FIRST = 35 };  // the runtime has 34

static _Atomic uint64_t taken;
static _Thread_local volatile int inside;

static void on_signal(int number, siginfo_t *info, void *context) {
  int error = errno, value = info->si_value.sival_int;
  (void)context;
  if (info->si_code != SI_QUEUE || value >> 24 != MAGIC >> 24) return;  // somebody else's
  inside++;
  (void)spin((uint64_t)value, 100);
  inside--;
  atomic_fetch_add(&taken, (uint64_t)(number * (value & 0xffffff)));
  errno = error;
}

static void handle(int number, struct sigaction *old) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
  if (sigaction(number, &action, old) != 0) abort();
}

static void send(int number, int value) {
  union sigval v = {.sival_int = MAGIC | value};
  while (pthread_sigqueue(pthread_self(), number, v) != 0)
    if (errno != EAGAIN) abort();
}

// The program takes all signals without a handler, from the first round on.
uint64_t torture_realtime(uint64_t seed, int count) {
  static unsigned char mine[65];
  uint64_t sum = 0;
  for (int n = FIRST; n <= SIGRTMAX; n++) {
    struct sigaction old;
    if (sigaction(n, 0, &old) == 0 && !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL)
      handle(n, 0), mine[n] = 1;
  }
  atomic_store(&taken, 0);
  uint64_t wanted = 0;
  for (int i = 0; i < count; i++) {
    int number = FIRST + i % (SIGRTMAX - FIRST + 1), value = (int)(mix(seed, (uint64_t)i) & 0xffff);
    sum = mix(sum, (uint64_t)value);
    if (!mine[number]) continue;
    send(number, value);
    wanted += (uint64_t)(number * value);
  }
  return atomic_load(&taken) == wanted ? sum : ~sum;
}

// A thread that blocks all signals, and waits for those that are sent to it.
static void *receive(void *arg) {
  uint64_t *sum = arg;
  int count = (int)*sum;
  sigset_t all, own;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_BLOCK, &all, 0);
  (void)sigemptyset(&own);
  for (int n = FIRST; n <= SIGRTMAX; n++) (void)sigaddset(&own, n);
  *sum = 0;
  for (int i = 0; i < count; i++) {
    int value = (int)(mix((uint64_t)count, (uint64_t)i) & 0xffff);
    send(FIRST + i % (SIGRTMAX - FIRST + 1), value);
    siginfo_t info;
    do
      if (sigwaitinfo(&own, &info) < 0 && errno != EINTR) abort();
    while (info.si_code != SI_QUEUE || info.si_value.sival_int != (MAGIC | value));
    *sum = mix(*sum, spin((uint64_t)value, 1000));
  }
  return 0;
}

uint64_t torture_masked(uint64_t seed, int count) {
  uint64_t sums[4], sum = seed;
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    sums[i] = (uint64_t)(count + i);
    if (pthread_create(&threads[i], 0, receive, &sums[i]) != 0) abort();
  }
  for (int i = 0; i < 4; i++) {
    (void)pthread_join(threads[i], 0);
    sum = mix(sum, sums[i]);
  }
  return sum;
}

// Installs handlers over existing ones and over ignored signals, and restores all of them.
uint64_t torture_replaced(uint64_t seed, int count) {
  static struct sigaction old[65];
  uint64_t sum = 0, wanted = 0;
  atomic_store(&taken, 0);
  for (int n = FIRST; n <= SIGRTMAX; n++) handle(n, &old[n]);
  handle(SIGURG, &old[SIGURG]);
  for (int i = 0; i < count; i++) {
    int number = FIRST + i % (SIGRTMAX - FIRST + 1), value = (int)(mix(seed, (uint64_t)i) & 0xffff);
    sum = mix(sum, (uint64_t)value);
    send(number, value);
    wanted += (uint64_t)(number * value);
  }
  sum = mix(sum, spin(seed, 200000));
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  for (int n = FIRST; n <= SIGRTMAX; n++) (void)sigaction(n, seed & 1 ? &ignore : &old[n], 0);
  (void)sigaction(SIGURG, &ignore, 0);
  sum = mix(sum, spin(seed, 200000));
  for (int n = FIRST; n <= SIGRTMAX; n++) (void)sigaction(n, &old[n], 0);
  (void)sigaction(SIGURG, &old[SIGURG], 0);
  return atomic_load(&taken) == wanted ? sum : ~sum;
}
