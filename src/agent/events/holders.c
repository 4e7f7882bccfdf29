// SPDX-License-Identifier: MIT
// While threads wait for a lock, its holder is observed again and again, at random times: so each
// place of the holder's code is charged with the waits that it causes, however long the lock is
// held and however often it changes hands. A sample stands for all that wait for that lock, for the
// time since the last scan: a sum over random scans, and so an estimate of the waiting time without
// bias. After a gap of more than MOST times the least one, because this thread got no processor,
// one moment does not stand for all of it: the rest counts as not observed.
//
// A holder that is blocked in the kernel is walked as wall mode does it; any other one gets a
// signal, and walks itself only if it holds the lock still. What cannot be walked is counted, by
// its reason. The throttle chooses among observations before anything is walked. Signal-safe: no.
#include "events/holders.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/log.h"
#include "base/random.h"
#include "engines/ask.h"
#include "life/library.h"
#include "sampling/wall.h"
#include "state/event_names.h"
#include "state/throttle.h"
#include "threads/asleep.h"

enum {
  SCANS = 25,  // a second
  MOST_SCANS = 100,
  MOST = 10,
  SCAN_REST = 50,  // after a scan, so many times its duration
};

static struct cs_waited_locks locks;
static uint64_t last_ns, next_ns, random_state;
static uint64_t unwalked[CS_UNWALKED_REASONS];  // ns

// Between two scans; the mean is twice that.
static uint64_t least_ns(void) {
  uint64_t scans = cs_options.event_rate != 0 ? cs_options.event_rate : SCANS;
  return 1000000000ull / 2 / (scans < MOST_SCANS ? scans : MOST_SCANS);
}

// ---- The locks that are waited for ----

static bool is_same(const struct cs_lock_wait *a, const struct cs_lock_wait *b) {
  if (a->monitor != 0 || b->monitor != 0) return a->monitor == b->monitor;
  return a->object == b->object && a->stops == b->stops;
}

bool cs_waited_locks_add(struct cs_waited_locks *l, const struct cs_lock_wait *wait) {
  for (size_t i = 0; i < l->count; i++) {
    if (!is_same(&l->at[i].wait, wait)) continue;
    l->at[i].waiters++;
    return true;
  }
  struct cs_waited_lock *at = cs_grow_or_not(l->at, l->count, &l->capacity, sizeof *at);
  if (at == NULL) return false;
  l->at = at;
  l->at[l->count++] = (struct cs_waited_lock){*wait, 1};
  return true;
}

void cs_waited_locks_free(struct cs_waited_locks *l) {
  free(l->at);
  *l = (struct cs_waited_locks){NULL, 0, 0};
}

static bool collect(struct cs_agent_thread *t, void *data) {
  struct cs_lock_wait wait;
  (void)data;
  if (!cs_lock_wait_read(t, &wait) || cs_waited_locks_add(&locks, &wait)) return true;
  cs_log_important("no memory for the list of locks: not all holders are sampled");
  return false;
}

// ---- A holder ----

// Only one that sleeps for moments is tried again (threads/asleep.h).
static enum cs_asleep_answer walk_asleep(const struct cs_pinned *holder,
                                         const struct cs_hold *hold) {
  for (int naps = 0;; naps++) {
    enum cs_asleep_answer answer = cs_wall_walk_holder(holder, hold);
    if (answer != CS_ASLEEP_RUNNING) return answer;
    if (naps == CS_ASLEEP_PATIENCE) break;
    (void)usleep(CS_ASLEEP_NAP_US);
  }
  cs_asleep_give_up(holder->thread);
  return CS_ASLEEP_RUNNING;
}

// Returns false if it is not walked.
static bool walk(const struct cs_pinned *holder, const struct cs_hold *hold) {
  if (walk_asleep(holder, hold) == CS_ASLEEP_YES) return true;
  if ((cs_load_acquire(&holder->thread->asked) & CS_ASKED_HOLD) != 0) return false;
  holder->thread->hold = *hold;
  return cs_ask_sample(holder->agent, holder->thread, CS_ASKED_HOLD, 0);
}

static void count_unwalked(enum cs_unwalked reason, uint64_t ns) {
  unwalked[reason] += ns;
}

// `gap`: since the last scan. `hold.weight`: what this observation stands for.
static void observe(const struct cs_waited_lock *lock, uint64_t gap) {
  struct cs_lock_owner seen;
  struct cs_pinned holder = {NULL, NULL};
  struct cs_hold hold = {.mode = CS_WIRE_MODE_HOLDERS};
  uint64_t weight;
  if (!cs_throttle_take(CS_WIRE_MODE_HOLDERS, gap * lock->waiters, NULL, &weight)) return;
  double most = (double)(MOST * least_ns());
  hold.weight = (double)gap <= most ? weight : (uint64_t)((double)weight / (double)gap * most);
  count_unwalked(CS_UNWALKED_LATE, weight - hold.weight);
  hold.generation = cs_load_acquire(&cs_library.world.code_generation);
  enum cs_lock_holder held = cs_lock_wait_owner(&lock->wait, &seen);
  if (held == CS_LOCK_HELD && !cs_pinned_find(seen.owner, &holder)) held = CS_LOCK_UNKNOWN;
  if (held != CS_LOCK_HELD) {
    count_unwalked(held == CS_LOCK_FREE ? CS_UNWALKED_FREE : CS_UNWALKED_UNKNOWN, hold.weight);
    return;
  }
  hold.owner_at = seen.owner_at;
  hold.class = seen.class;
  if (walk(&holder, &hold))
    cs_throttle_add_walk(CS_WIRE_MODE_HOLDERS);
  else
    count_unwalked(CS_UNWALKED_RELEASED, hold.weight);
  cs_thread_unpin(holder.thread);
}

// ---- Scans ----

void cs_holders_start(uint64_t now_ns) {
  memset(unwalked, 0, sizeof unwalked);
  random_state = now_ns | 1;
  last_ns = now_ns;
  next_ns = now_ns + least_ns();
}

uint64_t cs_holders_poll(uint64_t now_ns) {
  if (!cs_wants(CS_WIRE_MODE_HOLDERS)) return UINT64_MAX;
  if (now_ns < next_ns) return next_ns;
  uint64_t began = cs_tsc(), cpu = cs_thread_cpu_ns();
  locks.count = 0;
  cs_threads_visit(collect, NULL);
  for (size_t i = 0; i < locks.count; i++) observe(&locks.at[i], now_ns - last_ns);
  if (locks.count > 0) cs_throttle_add_cost(CS_WIRE_MODE_HOLDERS, cs_tsc() - began);
  uint64_t rest = least_ns() + cs_random_next(&random_state) % (2 * least_ns());
  uint64_t took = (cs_thread_cpu_ns() - cpu) * SCAN_REST;
  last_ns = now_ns;
  next_ns = now_ns + (rest > took ? rest : took);
  return next_ns;
}

void cs_holders_free(void) {
  cs_waited_locks_free(&locks);
}

uint64_t cs_holders_take_unwalked(enum cs_unwalked reason, uint32_t *name) {
  static const char *const names[] = {
      [CS_UNWALKED_FREE] = "[nobody held the lock: the waiting thread did not run yet]",
      [CS_UNWALKED_UNKNOWN] = "[the holder is not known]",
      [CS_UNWALKED_LATE] = "[not observed: the recorder got no processor]",
      [CS_UNWALKED_RELEASED] = "[the holder was not walked before it released the lock]"};
  uint64_t ns = unwalked[reason];
  if (reason == CS_UNWALKED_RELEASED) ns += cs_take_seq(&cs_agent.ring.released, 0u);
  unwalked[reason] = 0;
  *name = ns > 0 ? cs_event_name_of(names[reason]) : 0;
  return ns;
}
