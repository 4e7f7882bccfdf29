// SPDX-License-Identifier: MIT
// System calls that a handler with SA_RESTART does not interrupt (signal(7)), made by code that
// relies on it, and other calls, made by code that handles EINTR and must wait for as long as it
// wanted.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "torture.h"

struct other {
  int out, in;
  sem_t *full;
  uint64_t seed;
};

static int64_t now_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Reads bytes one by one, with pauses, and writes them back.
static void *echo(void *arg) {
  struct other *o = arg;
  unsigned char byte;
  while (read(o->in, &byte, 1) == 1) {
    (void)spin(byte, 2000);
    if (write(o->out, &byte, 1) != 1) break;
    (void)sem_post(o->full);
  }
  return 0;
}

static long restarting(int to, int from, sem_t *full, uint64_t random) {
  unsigned char byte = (unsigned char)random, back;
  if (write(to, &byte, 1) != 1) return -errno;
  if (read(from, &back, 1) != 1) return -errno;
  if (sem_wait(full) != 0) return -errno;
  return back == byte ? byte : -1000;
}

static long child(uint64_t random) {
  int status;
  pid_t pid = fork();
  if (pid == 0) _exit((int)(spin(random, 20000) & 127));
  if (waitpid(pid, &status, 0) != pid) return -errno;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -2000 - WTERMSIG(status);
}

// Waits for the whole time, across interruptions.
static long waiting(uint64_t random) {
  int64_t wanted = 200000 + (int64_t)(random % 1000000), end = now_ns() + wanted, left;
  struct timespec rest = {0, wanted};
  if (random & 1)
    while (nanosleep(&rest, &rest) != 0)
      if (errno != EINTR) return -errno;
  while ((left = end - now_ns()) > 0)
    if (poll(0, 0, (int)(left / 1000000) + 1) < 0 && errno != EINTR) return -errno;
  return 7;
}

// A checksum of the calls' results, or a negative number for an error.
long torture_calls(uint64_t seed, int count) {
  int there[2], back[2];
  sem_t full;
  pthread_t thread;
  if (pipe(there) != 0 || pipe(back) != 0 || sem_init(&full, 0, 0) != 0) return -errno;
  struct other other = {.out = back[1], .in = there[0], .full = &full};
  if (pthread_create(&thread, 0, echo, &other) != 0) return -1001;
  uint64_t sum = seed, random = seed;
  long got = 0;
  for (int i = 0; i < count && got >= 0; i++) {
    random = mix(random, (uint64_t)i);
    if (i % 20 == 19)
      got = child(random);
    else
      got = i % 4 == 3 ? waiting(random >> 8) : restarting(there[1], back[0], &full, random);
    sum = mix(sum, (uint64_t)got);
  }
  (void)close(there[1]);
  (void)pthread_join(thread, 0);
  (void)close(there[0]), (void)close(back[0]), (void)close(back[1]), (void)sem_destroy(&full);
  return got < 0 ? got : (long)(sum >> 1);
}
