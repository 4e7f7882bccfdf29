// SPDX-License-Identifier: MIT
// Threads that the runtime has not made, and that call back into it (tests/apps/Callers). Half of
// them stay a moment after their call, as threads of a real library do: the runtime forgets a
// thread later than it ends.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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
