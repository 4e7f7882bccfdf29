// SPDX-License-Identifier: MIT
// Native threads that have called managed code and then sleep, each in its own kind of call, below
// a function whose caller is found by rbp, which /proc does not show of a thread that sleeps. They
// count how often a call was interrupted, and print that, and for how
// long they ran or wanted to.
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef void work_fn(int kind);

enum { POLL, EPOLL, NANOSLEEP, FUTEX, FUTEX_LIMIT, BLOCKED, PERIODIC, KINDS };
static const char *const names[KINDS] = {"s-poll",  "s-epoll",   "s-nanosleep", "s-futex",
                                         "s-limit", "s-blocked", "s-periodic"};
enum { PERIOD_MS = 25, LONG_MS = 3600000 };

struct sleeper {
  pthread_t thread;
  work_fn *work;
  int kind;
  unsigned interrupted;
  uint64_t awake_ns;
  int word, epoll;
  struct timespec limit;
};
static struct sleeper sleepers[KINDS];
static int end_pipe[2];
static uint32_t over;  // atomic

// The time for which the calling thread has had a processor, or has waited for one.
static uint64_t awake_ns(void) {
  unsigned long long ran = 0, waited = 0;
  FILE *file = fopen("/proc/thread-self/schedstat", "re");
  if (file == NULL || fscanf(file, "%llu %llu", &ran, &waited) != 2) abort();
  (void)fclose(file);
  return ran + waited;
}

static long sleep_once(struct sleeper *s) {
  struct pollfd fd = {end_pipe[0], POLLIN, 0};
  struct epoll_event event;
  switch (s->kind) {
    case EPOLL:
      return epoll_wait(s->epoll, &event, 1, -1);
    case NANOSLEEP:
      return nanosleep(&s->limit, NULL);
    case FUTEX:
      return syscall(SYS_futex, &over, FUTEX_WAIT, 0, NULL, NULL, 0);
    case FUTEX_LIMIT:
      return syscall(SYS_futex, &over, FUTEX_WAIT, 0, &s->limit, NULL, 0);
    case PERIODIC:
      return poll(&fd, 1, PERIOD_MS);
    default:
      return poll(&fd, 1, LONG_MS);
  }
}

// What alloca takes is not known when it is compiled, so that its caller is found by rbp alone.
static __attribute__((noinline)) void sleep_below(struct sleeper *s, size_t taken) {
  volatile char *room = __builtin_alloca(taken);
  room[0] = 0;
  while (__atomic_load_n(&over, __ATOMIC_SEQ_CST) == 0)
    if (sleep_once(s) < 0 && errno == EINTR) s->interrupted++;
}

static void ignore(int signo) {
  (void)signo;
}

static void *run(void *data) {
  struct sleeper *s = data;
  sigset_t all;
  (void)prctl(PR_SET_NAME, names[s->kind]);
  s->work(0);
  if (s->kind == BLOCKED && sigfillset(&all) == 0) (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
  s->awake_ns = awake_ns();
  __atomic_store_n(&s->word, 1, __ATOMIC_SEQ_CST);
  sleep_below(s, 100 + (size_t)s->kind);
  s->awake_ns = awake_ns() - s->awake_ns;
  return NULL;
}

__attribute__((visibility("default"))) int sleepers_begin(work_fn *work);
__attribute__((visibility("default"))) void sleepers_end(void);

int sleepers_begin(work_fn *work) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = ignore;
  if (sigaction(SIGUSR2, &action, NULL) != 0 || pipe(end_pipe) != 0) return 1;
  for (int i = 0; i < KINDS; i++) {
    struct sleeper *s = &sleepers[i];
    struct epoll_event event = {.events = EPOLLIN};
    *s = (struct sleeper){.work = work, .kind = i, .limit = {LONG_MS / 1000, 0}};
    s->epoll = epoll_create1(0);
    if (s->epoll < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, end_pipe[0], &event) != 0 ||
        pthread_create(&s->thread, NULL, run, s) != 0)
      return 1;
    while (__atomic_load_n(&s->word, __ATOMIC_SEQ_CST) == 0) (void)usleep(1000);
  }
  return 0;
}

void sleepers_end(void) {
  __atomic_store_n(&over, 1u, __ATOMIC_SEQ_CST);
  (void)syscall(SYS_futex, &over, FUTEX_WAKE, KINDS, NULL, NULL, 0);
  if (write(end_pipe[1], "", 1) != 1) return;
  (void)pthread_kill(sleepers[NANOSLEEP].thread, SIGUSR2);
  for (int i = 0; i < KINDS; i++) {
    struct sleeper *s = &sleepers[i];
    (void)pthread_join(s->thread, NULL);
    if (i == NANOSLEEP) s->interrupted--;
    (void)printf("%s interrupted %u awake_ns %llu\n", names[i], s->interrupted,
                 (unsigned long long)s->awake_ns);
  }
  (void)fflush(stdout);
}
