// SPDX-License-Identifier: MIT
// The observer of the thread pool: reads the pool's objects in the process's memory, which runs on.
// Invariants: a scan counts only if no thread held the lock on the runtime's threads before and
// after it, as one that suspends them for a collection does, and if each object is of its class;
// the pool is called starved by the rule of docs/thread-pool.md only, of two scans at least half a
// second apart; scans take one hundredth of a processor. One thread. Signal-safe: no.
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "objects/modules.h"
#include "process/proc.h"
#include "session/scans.h"
#include "stack/outside.h"
#include "top/top.h"

enum { CPU_SHARE = 100 };

struct pool_observer {
  pid_t pid;
  struct cs_remote *remote;
  struct cs_heap_modules *modules;
  struct cs_heap *heap;  // NULL: not opened yet
  struct cs_wire_pool totals;
  struct cs_pool last;             // the last scan
  uint64_t last_ns;                // when it ended
  bool blocked;                    // its workers were
  struct cs_wire_starved starved;  // time_ns 0: the last scan has not found it so
};

static void sleep_for(uint64_t ns) {
  struct timespec left = cs_timespec_of(ns);
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

// Returns false if the pool cannot be read yet, as while the runtime starts, or at all.
static bool open_pool(struct pool_observer *l) {
  struct cs_error err;
  l->remote = cs_remote_open(l->pid, &err);
  if (l->remote == NULL) return false;
  l->modules = cs_heap_modules_new(l->remote);
  l->heap = cs_heap_new(l->modules, &err);
  if (l->heap != NULL) return true;
  cs_heap_modules_free(l->modules);
  cs_remote_close(l->remote);
  return false;
}

static bool read_pool(struct pool_observer *l, struct cs_pool *pool) {
  struct cs_remote_holder holder;
  cs_remote_invalidate(l->remote);
  cs_outside_pool_read(l->remote, l->heap, pool);
  cs_remote_invalidate(l->remote);
  return cs_remote_holder(l->remote, &holder) && holder.own_tid == 0 &&
         pool->state != CS_POOL_UNKNOWN;
}

// By the kernel's states of the workers, as in `clrsnap top`.
static bool are_blocked(const struct pool_observer *l, uint64_t now_ns) {
  struct cs_top_proc proc = {0};
  uint32_t waiting = 0, running = 0;
  if (!cs_top_proc_read(&proc, l->pid, now_ns)) return false;
  for (size_t i = 0; i < proc.count; i++) {
    const struct cs_top_task *task = &proc.tasks[i];
    if (strcmp(task->name, CS_POOL_WORKER) != 0) continue;
    *(task->state == 'S' || task->state == 'D' ? &waiting : &running) += 1;
  }
  cs_top_proc_free(&proc);
  return cs_pool_is_blocked(l->pid, waiting, running);
}

static void count(struct cs_wire_pool *totals, const struct cs_pool *pool, uint64_t now_ns) {
  if (totals->scans == 0 || pool->workers < totals->least_workers)
    totals->least_workers = pool->workers;
  if (pool->workers > totals->most_workers) totals->most_workers = pool->workers;
  totals->workers_sum += pool->workers;
  totals->scans++;
  if (pool->queued <= totals->most_queued) return;
  totals->most_queued = pool->queued;
  totals->most_queued_ns = now_ns;
}

static void scan(struct pool_observer *l) {
  struct cs_pool now;
  l->starved.time_ns = 0;
  uint64_t begin_ns = cs_clock_now_ns();
  bool known = read_pool(l, &now);
  if (!known) l->totals.failed++;
  bool used = l->totals.scans > 0 || now.workers > 0 || now.queued > 0;
  if (!known || now.state != CS_POOL_KNOWN || !used) {
    l->last.state = CS_POOL_UNKNOWN;
    return;
  }
  count(&l->totals, &now, begin_ns);
  bool blocked = now.queued > 0 && now.busy == now.workers && are_blocked(l, begin_ns);
  if (blocked && l->blocked && begin_ns - l->last_ns >= CS_POOL_LATE_NS &&
      cs_pool_is_late(&l->last, &now)) {
    l->totals.starved++;
    l->starved = (struct cs_wire_starved){begin_ns, now.queued, now.workers, 0};
  }
  l->blocked = blocked;
  l->last = now;
  l->last_ns = cs_clock_now_ns();
}

// Returns false if the command is gone.
static bool send(int to, const struct pool_observer *l) {
  struct {
    struct cs_wire_record pool_head;
    struct cs_wire_pool pool;
    struct cs_wire_record starved_head;
    struct cs_wire_starved starved;
  } r = {{sizeof r.pool_head + sizeof r.pool, CS_WIRE_POOL, 0},
         l->totals,
         {sizeof r.starved_head + sizeof r.starved, CS_WIRE_STARVED, 0},
         l->starved};
  _Static_assert(sizeof r.pool % 8 == 0 && sizeof r.starved % 8 == 0, "records are padded");
  size_t size = l->starved.time_ns != 0 ? sizeof r : r.pool_head.size;
  return write(to, &r, size) == (ssize_t)size;  // a pipe takes so few bytes as a whole
}

// Short recordings end before the process is opened, which costs most.
void cs_pool_scans_run(int to, pid_t pid, const struct cs_scans_ask *ignored) {
  struct pool_observer l = {.pid = pid};
  uint64_t pause_ns = CS_POOL_LATE_NS;
  (void)ignored;
  for (;;) {
    sleep_for(pause_ns);
    if (cs_proc_has_ended(pid)) return;
    uint64_t cpu_ns = cs_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (l.heap == NULL && !open_pool(&l)) {
      pause_ns =
          CPU_SHARE * (cs_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns) + CS_POOL_LATE_NS;
      continue;
    }
    cpu_ns = cs_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
    scan(&l);
    if (l.totals.scans > 0 && !send(to, &l)) return;
    pause_ns = CPU_SHARE * (cs_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns);
    if (pause_ns < CS_POOL_LATE_NS) pause_ns = CS_POOL_LATE_NS;
  }
}
