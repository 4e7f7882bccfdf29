// SPDX-License-Identifier: MIT
// Threads that the runtime has not made, and that call back into it (tests/apps/Callers). Half of
// them stay a moment after their call, as threads of a real library do: the runtime forgets a
// thread later than it ends.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef void work_fn(int kind);

struct caller {
  pthread_t thread;
  work_fn *work;
  int kind, lingers;
};

static void *call(void *data) {
  const struct caller *c = data;
  char name[16];
  (void)snprintf(name, sizeof name, "native-%d", c->kind);
  (void)prctl(PR_SET_NAME, name);
  c->work(c->kind);
  if (c->lingers) (void)usleep(500);
  return NULL;
}

__attribute__((visibility("default"))) int callers_run(int threads, int at_once, int kinds,
                                                       work_fn *work);

int callers_run(int threads, int at_once, int kinds, work_fn *work) {
  struct caller *callers = calloc((size_t)at_once, sizeof *callers);
  int failed = callers == NULL ? threads : 0, next = 0;
  while (callers != NULL && next < threads) {
    int begun = 0;
    for (; begun < at_once && next < threads; begun++, next++) {
      // Not in step with the number of threads at once, so that a place's next thread is of another
      // kind.
      callers[begun] = (struct caller){.work = work, .kind = next % kinds, .lingers = next & 1};
      if (pthread_create(&callers[begun].thread, NULL, call, &callers[begun]) != 0) {
        failed++;
        break;
      }
    }
    for (int i = 0; i < begun; i++) (void)pthread_join(callers[i].thread, NULL);
    if (begun == 0) break;
  }
  free(callers);
  return failed;
}

// ---- Threads whose stacks have no room for a signal, once they have called managed code ----

enum { STACK = 56 << 10, GAP = 64 << 10, ROOM = 9384, ROUNDS = 1000000, SMALL = 4 };
static unsigned char *gaps;  // each a gap that nobody writes to, and a stack above it
static work_fn *small_work;

static __attribute__((noinline)) unsigned compute(size_t used) {
  volatile unsigned char *at = __builtin_alloca(used);
  memset((void *)at, 0, used);
  for (unsigned i = 0; i < ROUNDS; i++) at[i % used]++;
  return at[1];
}

static void *small_caller(void *number) {
  const unsigned char *gap = gaps + (size_t)number * (GAP + STACK);
  (void)prctl(PR_SET_NAME, "small-caller");
  small_work(0);
  for (;;) {
    (void)compute(STACK - ROOM);
    for (size_t i = 0; i < GAP; i++)
      if (gap[i] != 0) abort();
  }
  return NULL;
}

__attribute__((visibility("default"))) int callers_small(work_fn *work);

int callers_small(work_fn *work) {
  gaps =
      mmap(NULL, SMALL * (GAP + STACK), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  small_work = work;
  for (size_t i = 0; i < SMALL; i++) {
    pthread_attr_t attr;
    pthread_t thread;
    (void)pthread_attr_init(&attr);
    if (gaps == MAP_FAILED ||
        pthread_attr_setstack(&attr, gaps + i * (GAP + STACK) + GAP, STACK) != 0 ||
        pthread_create(&thread, &attr, small_caller, (void *)i) != 0)
      return 1;
  }
  return 0;
}
