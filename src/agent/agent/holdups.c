// SPDX-License-Identifier: MIT
// While the runtime is being suspended, it waits for threads in cooperative mode. A thread of our
// own, the watching thread, looks for them and asks them for samples. It calls nothing of the CLR,
// so no suspension stops it. A look reads a word of each thread, and for those that hold up the
// suspension their CPU clock: one that has not run since the last look is not scheduled, or is
// blocked by a page fault or a system call. Its signal finds it where it stands when it runs again.
//
// What it costs. Most ways take less than PATIENCE_NS, and those cost two system calls of the
// suspending thread, which set a timer and stop it: nothing wakes up. In longer ones the samples
// take a HELD_SHARE of the way at most, apart from the first; so they hardly make it longer.
//
// Invariant: `timer` is used inside the epoch by callbacks, and deleted after it. Threads: as
// stated at each part. Signal-safe: no.
#include "agent/holdups.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/futex.h"
#include "life/epoch.h"
#include "sampling/ask.h"
#include "sampling/engine.h"
#include "sampling/event_names.h"
#include "sampling/events.h"
#include "sampling/threads.h"
#include "threads/sleeper.h"
#include "threads/threads.h"

enum {
  PATIENCE_NS = 300000,  // of a way, before the first look
  LEAST_NAP_NS = 50000,  // between two looks, and
  MOST_NAP_NS = 10000000,
  NAP_PART = 32,     // this part of the way so far
  HELD_SHARE = 100,  // of the way: one part in so many is spent on samples
  MOST_ASKED = 4,    // threads in a look
};

enum watching { OFF, STARTING, READY, REFUSED, ENDING };

static uint32_t watching;       // atomic, enum watching; a futex
static pthread_t thread;        // the agent's thread only
static timer_t timer;           // signals the watching thread; valid while `watching` is READY
static uint32_t suspended_for;  // atomic, COR_PRF_SUSPEND_REASON

// ---- The watching thread ----

enum why { RUNS, NOT_SCHEDULED, PAGE_FAULT, SYSTEM_CALL, WHYS };

struct look {
  const struct cs_world *world;
  uint64_t begun;
  bool may_ask;
  unsigned asked;
  uint32_t names[WHYS];
};

static void name_reasons(struct look *look) {
  static const char *const why[WHYS] = {"", ": not scheduled", ": page fault", ": system call"};
  uint32_t reason = cs_load_relaxed(&suspended_for);
  bool collection = reason == COR_PRF_SUSPEND_FOR_GC || reason == COR_PRF_SUSPEND_FOR_GC_PREP;
  for (unsigned i = 0; i < WHYS; i++) {
    char name[64];
    (void)snprintf(name, sizeof name, "[holds up %s%s]",
                   collection ? "GC" : "a stop of the runtime", why[i]);
    look->names[i] = cs_event_name_of(name);
  }
}

// Why a thread has not run. RUNS: it is not known.
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

static bool look_at(struct cs_agent_thread *t, void *data) {
  struct look *look = data;
  if (t->clr_thread == 0 || t->tid == 0 || look->asked == MOST_ASKED ||
      !cs_suspension_waits_for(&cs_signal.suspension, look->world, t->tid, t->clr_thread))
    return true;
  uint64_t now = cs_clock_now_ns(), clock = cs_cpu_ns_of(t->tid);
  bool again = t->looked_in == look->begun;
  uint64_t passed = now - t->looked_ns, used = clock - t->looked_cpu_ns;
  t->looked_in = look->begun;
  t->looked_ns = now;
  t->looked_cpu_ns = clock;
  if (!again || !look->may_ask) return true;
  enum why why = used < passed / 2 ? why_not(t->thread) : RUNS;
  look->asked++;
  cs_ask_holdup(t, look->names[why]);
  return true;
}

static void nap(uint64_t ns) {
  struct timespec time = cs_timespec_of(ns);
  (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void watch_suspension(uint64_t begun) {
  struct look look = {.begun = begun};
  name_reasons(&look);
  while (cs_load_acquire(&cs_signal.suspension.begun) == begun) {
    uint64_t way = cs_clock_ticks_to_ns(cs_tsc() - begun);
    uint64_t rest = way / NAP_PART;
    look.world = cs_load_acquire(&cs_signal.world);
    look.may_ask = cs_load_relaxed(&cs_signal.suspension.held_ns) * HELD_SHARE <= way;
    look.asked = 0;
    if (look.world != NULL) cs_threads_visit(look_at, &look);
    nap(rest < LEAST_NAP_NS ? LEAST_NAP_NS : rest > MOST_NAP_NS ? MOST_NAP_NS : rest);
  }
}

static bool make_timer(void) {
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = cs_threads.signal_number;
  event._sigev_un._tid = gettid();
  return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
}

// All signals are blocked, and the timer's is waited for.
static void *watch(void *unused) {
  sigset_t ours;
  (void)unused;
  (void)prctl(PR_SET_NAME, ".clrsnap-gc");
  (void)prctl(PR_SET_TIMERSLACK, 1000);
  (void)sigemptyset(&ours);
  (void)sigaddset(&ours, cs_threads.signal_number);
  cs_store_release(&cs_agent.watcher_tid, (uint32_t)gettid());
  cs_store_release(&watching, (uint32_t)(make_timer() ? READY : REFUSED));
  cs_futex_wake(&watching);
  while (cs_load_acquire(&watching) == READY) {
    siginfo_t info;
    (void)sigwaitinfo(&ours, &info);
    uint64_t begun = cs_load_acquire(&cs_signal.suspension.begun);
    if (begun != 0) watch_suspension(begun);
  }
  return NULL;
}

// ---- The callbacks ----

static void set_timer(uint64_t ns) {
  struct itimerspec when = {.it_value = cs_timespec_of(ns)};
  (void)timer_settime(timer, 0, &when, NULL);
}

// Inside the epoch.
static void suspending(uint32_t reason) {
  static __thread uint32_t own_tid;
  struct cs_suspension *s = &cs_signal.suspension;
  if (own_tid == 0) own_tid = (uint32_t)gettid();
  uint64_t weight = cs_events_begin_way();
  if (weight == 0 || cs_load_acquire(&watching) != READY) return;
  uint64_t now = cs_tsc();
  cs_store_relaxed(&suspended_for, reason);
  cs_store_relaxed(&s->weight, weight);
  cs_store_relaxed(&s->held_ns, 0u);
  cs_store_relaxed(&s->mode, (uint32_t)CS_WIRE_MODE_GC);
  cs_store_relaxed(&s->suspender, own_tid);
  cs_store_release(&s->begun, now);
  cs_store_release(&s->accounted, now);
  set_timer(PATIENCE_NS);
}

// No thread is in cooperative mode any more, so no handler accounts for anything.
static void suspended(void) {
  struct cs_suspension *s = &cs_signal.suspension;
  uint64_t begun = cs_take_seq(&s->begun, 0u), until = cs_take_seq(&s->accounted, 0u);
  if (begun == 0 || until < begun) return;
  uint64_t ns = cs_scale(until - begun, cs_signal.ns_of_tick);
  cs_events_end_way(cs_scale(ns, cs_load_relaxed(&s->weight)));
  if (cs_load_acquire(&watching) == READY) set_timer(0);
}

void cs_holdups_suspending(uint32_t reason) {
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  if (cs_wants(CS_WIRE_MODE_GC)) suspending(reason);
  cs_epoch_leave(&cs_signal.epoch, parity);
}

void cs_holdups_suspended(void) {
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  if (cs_wants(CS_WIRE_MODE_GC)) suspended();
  cs_epoch_leave(&cs_signal.epoch, parity);
}

// ---- The agent's thread ----

void cs_holdups_begin(void) {
  cs_agent.watcher_ns = 0;
  if (!cs_wants(CS_WIRE_MODE_GC)) return;
  cs_store_release(&watching, (uint32_t)STARTING);
  if (pthread_create(&thread, NULL, watch, NULL) != 0) {
    cs_store_release(&watching, (uint32_t)OFF);
  } else {
    while (cs_load_acquire(&watching) == STARTING)
      cs_futex_wait_until(&watching, STARTING, UINT64_MAX / 2);
  }
  if (cs_load_acquire(&watching) != READY)
    cs_producer_say(&cs_agent.wire,
                    "there is no thread or timer left to watch suspensions of the runtime with: "
                    "mode gc does not show what holds them up (ulimit -u, ulimit -i)");
}

void cs_holdups_end(void) {
  uint32_t state = cs_load_acquire(&watching);
  if (state == OFF) return;
  struct itimerspec now = {.it_value.tv_nsec = 1};
  cs_store_release(&watching, (uint32_t)ENDING);
  bool idle = cs_epoch_wait();  // no callback uses the timer any more
  cs_store_release(&cs_signal.suspension.begun, 0u);
  cs_store_release(&cs_signal.suspension.accounted, 0u);
  if (state == READY) (void)timer_settime(timer, 0, &now, NULL);
  cs_agent.watcher_ns = cs_cpu_ns_of(cs_agent.watcher_tid);
  (void)pthread_join(thread, NULL);
  // Better lose a timer than set one that is the program's.
  if (state == READY && idle) (void)timer_delete(timer);
  cs_store_release(&cs_agent.watcher_tid, 0u);
  cs_store_release(&watching, (uint32_t)OFF);
}
