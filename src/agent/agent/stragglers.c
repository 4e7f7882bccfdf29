// SPDX-License-Identifier: MIT
// While the runtime is being suspended, it waits for threads in cooperative mode. A thread of the
// agent's own, the watching thread, finds these threads and asks them for samples. It never calls
// the CLR, so no suspension stops it. A scan reads a word of each thread, and the CPU clock of each
// thread that holds up the suspension: a thread that has not run since the last scan is not
// scheduled, or is blocked by a page fault or a system call. It takes the signal, at the same
// place, when it runs again.
//
// Costs: most suspensions take less than PATIENCE_NS, and no thread is examined in those. The
// watching thread sleeps until a suspension begins, which wakes it, and then polls until there has
// been none for LINGER_NS, so that of many suspensions in a row only the first has to wake it. In a
// long suspension, the samples take at most one part in HELD_SHARE, apart from the first one, so
// they hardly prolong it.
//
// Threads: as stated at each part. Signal-safe: no.
#include "agent/stragglers.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/own_thread.h"
#include "engines/ask.h"
#include "engines/engine.h"
#include "events/events.h"
#include "state/event_names.h"
#include "state/threads.h"
#include "threads/sleeper.h"

enum {
  PATIENCE_NS = 300000,  // of a suspension, before the first scan
  POLL_NS = 1000000,     // between two polls
  LINGER_NS = 20000000,  // after the last suspension, before the thread sleeps until the next one
  LEAST_NAP_NS = 50000,  // between two scans in a suspension
  MOST_NAP_NS = 10000000,
  NAP_PART = 32,     // a nap is 1 / this of the suspension so far
  HELD_SHARE = 100,  // 1 / this of the suspension is spent on samples
  MOST_ASKED = 4,    // threads per scan
};

static pthread_t thread;  // the agent's thread only
// Atomic.
static uint32_t watching;       // 1: there is a watching thread, which is to go on
static uint32_t asleep;         // 1: it sleeps until it is woken; a futex
static uint32_t suspended_for;  // COR_PRF_SUSPEND_REASON
static uint64_t last_begun;     // when the last suspension began, of the time-stamp counter

// ---- The watching thread ----

enum why { RUNS, NOT_SCHEDULED, PAGE_FAULT, SYSTEM_CALL, WHYS };

struct scan {
  const struct cs_world *world;
  uint64_t begun;
  bool may_ask;
  unsigned asked;
  uint32_t names[WHYS];
};

static void name_reasons(struct scan *scan) {
  static const char *const why[WHYS] = {"", ": not scheduled", ": page fault", ": system call"};
  uint32_t reason = cs_load_relaxed(&suspended_for);
  bool collection = reason == COR_PRF_SUSPEND_FOR_GC || reason == COR_PRF_SUSPEND_FOR_GC_PREP;
  for (unsigned i = 0; i < WHYS; i++) {
    char name[64];
    (void)snprintf(name, sizeof name, "[holds up %s%s]",
                   collection ? "GC" : "a stop of the runtime", why[i]);
    scan->names[i] = cs_event_name_of(name);
  }
}

// Returns why a thread has not run, or RUNS if that is not known.
static enum why why_not(struct cs_thread *entry) {
  static struct cs_sleeper spare;
  uint64_t sp, ip;
  struct cs_sleeper *sleeper = cs_sleeper_open(entry, &spare);
  if (sleeper == NULL) return RUNS;
  enum why why = NOT_SCHEDULED;
  if (cs_sleeper_where(sleeper, &sp, &ip) != CS_SLEEP_RUNNING)
    why = cs_sleeper_call(sleeper) >= 0 ? SYSTEM_CALL : PAGE_FAULT;
  cs_sleeper_close(sleeper, &spare);
  return why;
}

static bool scan_thread(struct cs_agent_thread *t, void *data) {
  struct scan *scan = data;
  if (t->clr_thread == 0 || t->tid == 0 || scan->asked == MOST_ASKED ||
      !cs_suspension_waits_for(&cs_signal.suspension, scan->world, t->tid, t->clr_thread))
    return true;
  uint64_t now = cs_clock_now_ns(), clock = cs_cpu_ns_of(t->tid);
  bool again = t->scanned_in == scan->begun;
  uint64_t passed = now - t->scanned_ns, used = clock - t->scanned_cpu_ns;
  t->scanned_in = scan->begun;
  t->scanned_ns = now;
  t->scanned_cpu_ns = clock;
  if (!again || !scan->may_ask) return true;
  enum why why = used < passed / 2 ? why_not(t->thread) : RUNS;
  scan->asked++;
  cs_ask_straggler(t, scan->names[why]);
  return true;
}

static void nap(uint64_t ns) {
  struct timespec time = cs_timespec_of(ns);
  (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

// With SCHED_BATCH the thread does not preempt a thread of the program when it wakes up, which
// could make a short pause long; but if all processors are busy, it waits for its turn.
static void be_scheduled_as(int policy) {
  (void)sched_setscheduler(0, policy, &(struct sched_param){0});
}

static void watch_suspension(uint64_t begun) {
  struct scan scan = {.begun = begun};
  name_reasons(&scan);
  be_scheduled_as(SCHED_OTHER);
  while (cs_load_acquire(&cs_signal.suspension.begun) == begun && cs_load_acquire(&watching) == 1) {
    uint64_t elapsed = cs_clock_ticks_to_ns(cs_tsc() - begun);
    uint64_t rest = elapsed / NAP_PART;
    scan.world = cs_load_acquire(&cs_signal.world);
    scan.may_ask = cs_load_relaxed(&cs_signal.suspension.held_ns) * HELD_SHARE <= elapsed;
    scan.asked = 0;
    if (scan.world != NULL) cs_threads_visit(scan_thread, &scan);
    nap(rest < LEAST_NAP_NS ? LEAST_NAP_NS : rest > MOST_NAP_NS ? MOST_NAP_NS : rest);
  }
  be_scheduled_as(SCHED_BATCH);
}

// A thread that changes what this one waits for makes the change first, and then reads `asleep`.
static void sleep_until_woken(void) {
  (void)cs_take_seq(&asleep, 1u);
  while (cs_load_acquire(&asleep) == 1 && cs_load_acquire(&watching) == 1 &&
         cs_load_acquire(&cs_signal.suspension.begun) == 0)
    cs_futex_wait_until(&asleep, 1, UINT64_MAX / 2);
  cs_store_release(&asleep, 0u);
}

static void wake(void) {
  if (cs_load_acquire(&asleep) == 1 && cs_take_seq(&asleep, 0u) == 1) cs_futex_wake(&asleep);
}

static void *watch(void *unused) {
  (void)unused;
  (void)prctl(PR_SET_NAME, ".clrsnap-gc");
  (void)prctl(PR_SET_TIMERSLACK, 1000);
  be_scheduled_as(SCHED_BATCH);
  cs_store_release(&cs_agent.watcher_tid, (uint32_t)gettid());
  while (cs_load_acquire(&watching) == 1) {
    uint64_t begun = cs_load_acquire(&cs_signal.suspension.begun), now = cs_tsc();
    uint64_t elapsed = begun != 0 && now > begun ? cs_clock_ticks_to_ns(now - begun) : 0;
    uint64_t last = cs_load_relaxed(&last_begun);
    if (begun != 0 && elapsed < PATIENCE_NS)
      nap(PATIENCE_NS - elapsed);
    else if (begun != 0)
      watch_suspension(begun);
    else if (now > last && cs_clock_ticks_to_ns(now - last) > LINGER_NS)
      sleep_until_woken();
    else
      nap(POLL_NS);
  }
  cs_agent.watcher_ns = cs_thread_cpu_ns();
  cs_store_release(&cs_agent.watcher_tid, 0u);
  return NULL;
}

// ---- The callbacks ----

void cs_stragglers_suspending(uint32_t reason) {
  static __thread uint32_t own_tid;
  struct cs_suspension *s = &cs_signal.suspension;
  if (!cs_wants(CS_WIRE_MODE_GC)) return;
  if (own_tid == 0) own_tid = (uint32_t)gettid();
  uint64_t weight = cs_events_begin_way();
  if (weight == 0 || cs_load_acquire(&watching) == 0) return;
  uint64_t now = cs_tsc();
  cs_store_relaxed(&suspended_for, reason);
  cs_store_relaxed(&s->weight, weight);
  cs_store_relaxed(&s->weights, 0u);
  cs_store_relaxed(&s->held_ns, 0u);
  cs_store_relaxed(&s->mode, (uint32_t)CS_WIRE_MODE_GC);
  cs_store_relaxed(&s->suspender, own_tid);
  cs_store_relaxed(&last_begun, now);
  cs_store_release(&s->accounted, now);
  (void)cs_take_seq(&s->begun, now);
  wake();
}

// No thread is in cooperative mode any more, so no handler takes a straggler's sample.
void cs_stragglers_suspended(void) {
  struct cs_suspension *s = &cs_signal.suspension;
  // Also if the recording has ended since the suspension began.
  if (cs_load_relaxed(&s->begun) == 0 || cs_take_seq(&s->begun, 0u) == 0) return;
  (void)cs_take_seq(&s->accounted, 0u);
  cs_events_end_way(cs_load_relaxed(&s->weights));
}

// ---- The agent's thread ----

// A suspension that had not ended when the last recording did does not belong to this one.
static void forget_suspension(void) {
  cs_store_release(&cs_signal.suspension.begun, 0u);
  cs_store_release(&cs_signal.suspension.accounted, 0u);
}

void cs_stragglers_begin(void) {
  cs_agent.watcher_ns = 0;
  if (!cs_wants(CS_WIRE_MODE_GC)) return;
  forget_suspension();
  cs_store_release(&watching, 1u);
  if (cs_own_thread_begin(&thread, watch, NULL) == 0) return;
  cs_store_release(&watching, 0u);
  cs_producer_add_note(
      &cs_agent.wire,
      "no thread could be started that watches suspensions of the runtime: gc mode does "
      "not show what holds them up (ulimit -u)");
}

void cs_stragglers_end(void) {
  if (cs_load_acquire(&watching) == 0) return;
  (void)cs_take_seq(&watching, 0u);
  forget_suspension();
  wake();
  (void)pthread_join(thread, NULL);
}
