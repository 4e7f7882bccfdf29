// SPDX-License-Identifier: MIT
// The thread pool's workers, by their stacks, and whether the pool is starved. The pool is starved
// if, for half a second,
//   1. no worker is idle,
//   2. more items are queued at its beginning than are completed in it, so that an item waits in
//      the queue for longer than that, and
//   3. at least half of the workers wait, and fewer run than there are processors: more threads
//      would help, more processors would not.
// An idle server does not meet 1, one whose workers wait only briefly 2, and one under full load 3.
// Invariant: a pool is called starved only if all three are known to hold. One thread. Signal-safe:
// no.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/prefix.h"
#include "stack/outside.h"
#include "util/map.h"

// ---- The pool's objects ----

struct cs_heap *cs_outside_pool_open(struct cs_heap_modules *modules,
                                     struct cs_outside_pool *pool) {
  struct cs_error err;
  struct cs_pool ignored;
  struct cs_heap *heap = cs_heap_new(modules, &err);
  pool->now =
      (struct cs_pool){.why = "the runtime does not describe its classes as .NET 9 and 10 do"};
  // Finds the offsets of fields, which do not change, so that the stop takes less time.
  if (heap != NULL) cs_pool_read(heap, &ignored);
  return heap;
}

void cs_outside_pool_read(struct cs_remote *remote, struct cs_heap *heap, struct cs_pool *out) {
  struct cs_remote_holder holder;
  if (cs_remote_holder(remote, &holder) && holder.own_tid == 0)
    cs_pool_read(heap, out);
  else
    *out = (struct cs_pool){.why = "the runtime is suspended, as for a collection"};
}

// ---- Workers ----

static bool is_managed(const struct cs_outside_frame *f) {
  return f->kind == CS_CODE_JIT || f->kind == CS_CODE_R2R;
}

// Returns whether the frame is of the program's own code, or of a library that does not belong to
// .NET.
static bool is_user_code(const struct cs_outside_frame *f) {
  if (!is_managed(f) || f->token == 0 || f->module == NULL) return false;
  const char *file = cs_file_of(f->module);
  return !cs_has_prefix(file, "System.") && !cs_has_prefix(file, "Microsoft.");
}

const char *cs_outside_short_name(const char *name) {
  const char *method = strrchr(name, '.'), *type = method;
  if (method == NULL) return name;
  while (type > name && type[-1] != '.') type--;
  return type;
}

// Fills in where the worker waits: in the innermost of the program's own methods, or, if the item
// has none, in the method that has called .NET's waiting ones. `end`: of the item's frames.
static void find_place(const struct cs_outside_thread *t, uint32_t end,
                       struct cs_outside_wait *wait) {
  uint32_t at = 0;
  while (at < end && !is_user_code(&t->frames[at])) at++;
  if (at == end)
    for (at = 0; at < end; at++)
      if (is_managed(&t->frames[at]) && t->frames[at].token != 0 &&
          !cs_has_prefix(t->frames[at].name, "System.Threading."))
        break;
  if (at < end) wait->at = &t->frames[at];
  for (; at > 0 && wait->in == NULL; at--)
    if (is_managed(&t->frames[at - 1]) && t->frames[at - 1].token != 0)
      wait->in = &t->frames[at - 1];
}

static bool is_same_name(const struct cs_outside_frame *a, const struct cs_outside_frame *b) {
  return a == b || (a != NULL && b != NULL && strcmp(a->name, b->name) == 0);
}

static bool is_same_place(const struct cs_outside_wait *a, const struct cs_outside_wait *b) {
  return is_same_name(a->in, b->in) && is_same_name(a->at, b->at) &&
         (a->at == NULL || (a->at->source == b->at->source && a->at->line == b->at->line));
}

static void add_wait(struct cs_outside_pool *pool, const struct cs_outside_wait *wait,
                     size_t *capacity) {
  for (uint32_t i = 0; i < pool->wait_count; i++) {
    if (!is_same_place(&pool->waits[i], wait)) continue;
    pool->waits[i].workers++;
    return;
  }
  CS_APPEND(pool->waits, pool->wait_count, *capacity, *wait);
}

static int by_workers(const void *a, const void *b) {
  const struct cs_outside_wait *x = a, *y = b;
  return CS_ORDER(y->workers, x->workers);
}

// Returns whether the thread is a worker. *dispatch: the frame that works through the queues; the
// number of frames if the worker has no item.
static bool is_worker(const struct cs_outside_thread *t, uint32_t *dispatch) {
  *dispatch = t->count;
  for (uint32_t i = 0; i < t->count; i++) {
    if (!is_managed(&t->frames[i])) continue;
    if (*dispatch == t->count &&
        cs_has_prefix(t->frames[i].name, "System.Threading.ThreadPoolWorkQueue.Dispatch"))
      *dispatch = i;
    if (cs_has_prefix(t->frames[i].name, "System.Threading.PortableThreadPool.WorkerThread."))
      return true;
  }
  return false;
}

void cs_outside_pool_sort(struct cs_outside *outside) {
  struct cs_outside_pool *pool = &outside->pool;
  size_t capacity = 0;
  uint32_t dispatch;
  for (uint32_t i = 0; i < outside->count; i++) {
    const struct cs_outside_thread *t = &outside->threads[i];
    struct cs_outside_wait wait = {.workers = 1};
    if (!is_worker(t, &dispatch)) continue;
    if (dispatch == t->count) {
      pool->idle++;
    } else if (!cs_outside_is_waiting(t)) {
      pool->running++;
    } else {
      pool->waiting++;
      find_place(t, dispatch, &wait);
      add_wait(pool, &wait, &capacity);
    }
  }
  if (pool->wait_count > 1) qsort(pool->waits, pool->wait_count, sizeof *pool->waits, by_workers);
}

// ---- Starvation ----

bool cs_outside_pool_may_starve(const struct cs_outside *outside) {
  const struct cs_outside_pool *pool = &outside->pool;
  return pool->now.state == CS_POOL_KNOWN && pool->now.queued > 0 && pool->idle == 0 &&
         cs_pool_is_blocked(outside->pid, pool->waiting, pool->running);
}

// Of the workers that existed at the first stop.
static bool are_blocked(struct cs_remote *remote, const struct cs_outside *outside) {
  uint32_t waiting = 0, running = 0, dispatch;
  struct cs_remote_thread stopped;
  struct cs_error err;
  for (uint32_t i = 0; i < outside->count; i++) {
    const struct cs_outside_thread *t = &outside->threads[i];
    if (!is_worker(t, &dispatch) || !cs_remote_thread(remote, t->tid, &stopped, &err)) continue;
    *(stopped.call >= 0 ? &waiting : &running) += 1;
  }
  return cs_pool_is_blocked(outside->pid, waiting, running);
}

void cs_outside_pool_confirm(struct cs_remote *remote, struct cs_heap *heap,
                             struct cs_outside *outside) {
  struct cs_outside_pool *pool = &outside->pool;
  struct cs_pool later = {.state = CS_POOL_UNKNOWN};
  struct cs_error err;
  (void)nanosleep(&(struct timespec){.tv_nsec = CS_POOL_LATE_NS}, NULL);
  uint64_t stop = cs_clock_now_ns();
  if (!cs_remote_stop(remote, &err)) return;
  cs_outside_pool_read(remote, heap, &later);
  bool blocked = are_blocked(remote, outside);
  cs_remote_resume(remote);
  outside->stopped_ns += cs_clock_now_ns() - stop;
  pool->starved = blocked && cs_pool_is_late(&pool->now, &later);
}
