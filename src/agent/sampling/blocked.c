// SPDX-License-Identifier: MIT
// A thread that runs with its signals blocked takes no sample, and nothing but a signal can find
// out where it runs. What it uses meanwhile is known by its clock. Invariant: that time is part of
// a sample without a stack, and of no other: the sample that the thread takes when it unblocks the
// signal has the weight of a single one. (The thread is sent no second signal: engines/ask.c.) But
// a sample may also be late because its thread was in a long system call, or was put off; so its
// time is taken for blocked only if a scan has found the signal blocked in that time, or scans find
// it again and again.
//
// A thread that blocks the signal when its sampling begins, or is found to do so later, is sent
// none (engines/ask.h), and has no event. Of the others, only threads whose samples are overdue are
// looked at: code of the runtime and of the C library blocks signals for moments. The agent's
// thread only; the list's lock is held during a scan, but not to send. Signal-safe: no.
#include "sampling/blocked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "engines/ask.h"
#include "engines/engine.h"
#include "engines/engines.h"
#include "sampling/thread_life.h"
#include "sampling/weight.h"
#include "threads/altstack.h"
#include "threads/own_signal.h"

enum {
  RAN_NS = 1000000,        // more than a handler takes
  PATIENCE = 2,            // periods without a sample: the time to the next is 1.5 of them at most
  LATELY_NS = 1000000000,  // if two scans in this time find it blocked, it is so in between, too
};

struct used {
  struct cs_agent_thread *thread;
  uint64_t cpu_ns;
};

static struct {
  struct used *at;  // of this scan
  size_t count, capacity;
} used;
static uint64_t lost[CS_SAMPLE_MODES];
static uint64_t uncounted_ns;  // CPU time of threads whose events are not counted meanwhile

void cs_blocked_start(void) {
  memset(lost, 0, sizeof lost);
  uncounted_ns = 0;
}

static uint64_t most_ns(void) {
  return PATIENCE * cs_load_acquire(&cs_agent.period_ns);
}

static uint64_t interval_of(const struct cs_agent_thread *t) {
  uint64_t period = cs_load_acquire(&cs_agent.period_ns);
  uint64_t own = t->engine != NULL && t->engine->interval != NULL ? t->engine->interval() : 0;
  return own > period ? own : period;
}

// ---- Samples without a stack ----

static bool put(const struct cs_wire_sample *record) {
  if (cs_producer_begin_sample(&cs_agent.wire, record, NULL) == NULL) return false;
  cs_producer_commit_sample(&cs_agent.wire, record, NULL);
  return true;
}

static void send(struct cs_agent_thread *t, enum cs_wire_mode mode, uint64_t weight,
                 uint64_t time_ns) {
  struct cs_wire_sample record = {.time_ns = time_ns,
                                  .weight = weight,
                                  .thread = t->id,
                                  .stop = CS_STOP_BLOCKED,
                                  .mode = (uint16_t)mode,
                                  .held_ns = CS_WIRE_NOT_HELD};
  if (weight == 0) return;
  cs_add_relaxed(&cs_agent.ring.events, 1);
  cs_add_relaxed(&cs_agent.ring.samples, 1);
  if (!cs_threads_announce(t) || !put(&record)) lost[mode]++;
}

uint64_t cs_blocked_lost(enum cs_wire_mode mode) {
  return lost[mode];
}

// ---- Who blocks it ----

// Returns whether the thread has no larger alternate stack yet, without which it is sent no signal.
// It gets one by a signal, too.
static bool lacks_altstack(const struct cs_agent_thread *t) {
  return t->clr_thread != 0 && cs_load_acquire(&cs_signal.small_stacks) == 0 &&
         !cs_thread_may_be_signalled(t->thread) && cs_thread_room(t->thread) == CS_ROOM_ENOUGH;
}

// Returns the CPU time that the thread has used since it was first looked at in this state: it has
// neither taken a sample nor been asked for one since.
static uint64_t used_so_far(struct cs_agent_thread *t) {
  uint64_t cpu = cs_cpu_ns_of(t->tid);
  uint64_t asked = cs_load_relaxed(&t->asked_ns), sampled = cs_load_relaxed(&t->thread->cpu_ns);
  if (t->pending_since != asked || t->pending_sampled != sampled) t->pending_cpu_ns = cpu;
  t->pending_since = asked;
  t->pending_sampled = sampled;
  return cpu - t->pending_cpu_ns;
}

// A thread in a handler of ours blocks the signal as well, but never those of faults, and not for
// long. The signal need not be pending: the program may have taken it itself (sigwait, signalfd).
static bool blocks(struct cs_agent_thread *t) {
  uint64_t blocked, pending, bit = cs_ask_signal_bit();
  if (!cs_thread_signals(t->tid, &blocked, &pending) || (blocked & bit) == 0) return false;
  bool asked_in_vain = (pending & bit) != 0 || lacks_altstack(t);
  return t->blocks || ((blocked & CS_FAULT_SIGNALS) != 0 && asked_in_vain) ||
         used_so_far(t) > RAN_NS;
}

// The CPU clock of a thread without an engine is kept from scan to scan.
static uint64_t unsampled(struct cs_agent_thread *t, bool take) {
  if (t->engine != NULL) return t->engine->overdue(t, take);
  if (!lacks_altstack(t) && !t->blocks) return 0;
  uint64_t now = cs_cpu_ns_of(t->tid), from = t->unsampled_from;
  if (take || from == 0) t->unsampled_from = now;
  return from != 0 && now > from ? now - from : 0;
}

// Returns whether the thread has run since it was asked, or for long has not taken its signal. One
// that gets no processor may wait for it in a handler, with the signal blocked.
static bool runs_on(struct cs_agent_thread *t, uint64_t now_ns) {
  uint64_t asked = cs_load_relaxed(&t->asked_ns);
  if (now_ns - asked <= most_ns()) return false;
  return used_so_far(t) > RAN_NS || now_ns - asked > LATELY_NS;
}

static bool is_overdue(struct cs_agent_thread *t, uint64_t now_ns) {
  bool asked_by_scan = (cs_load_acquire(&t->thread->asked) & CS_ASKED_SCAN) != 0;
  if (cs_wants(CS_WIRE_MODE_CPU) &&
      (unsampled(t, false) > most_ns() || (asked_by_scan && runs_on(t, now_ns))))
    return true;
  if (!cs_wants(CS_WIRE_MODE_WALL) || t->clr_thread == 0) return false;
  if (lacks_altstack(t)) return now_ns - t->accounted_to_ns > most_ns() && t->proven_ns == 0;
  return (cs_load_acquire(&t->thread->asked) & CS_ASKED_WALL) != 0 && runs_on(t, now_ns);
}

// ---- CPU time ----

static bool add(struct cs_agent_thread *t, uint64_t cpu_ns) {
  struct used *at = cs_grow_or_not(used.at, used.count, &used.capacity, sizeof *at);
  if (at == NULL) return false;
  used.at = at;
  used.at[used.count++] = (struct used){t, cpu_ns};
  return true;
}

static void account(struct cs_agent_thread *t) {
  if (!cs_wants(CS_WIRE_MODE_CPU) || !add(t, 0)) return;
  uint64_t ns = unsampled(t, true);
  used.at[used.count - 1].cpu_ns = ns;
  if (t->engine == NULL) cs_engines_add_cpu(ns);
  if (cs_options.event != 0) uncounted_ns += ns;
}

struct scan {
  uint64_t now_ns;
  bool some_unblock;
  unsigned confirmed;
};

// An event would go on to send signals, which the thread may receive as data (sigwait).
static void stop_event(struct cs_agent_thread *t) {
  if (t->engine == NULL || t->engine == &cs_engine_clock) return;
  cs_engine_stop(t);
  t->unsampled_from = cs_cpu_ns_of(t->tid);
}

// A thread may have been about to wait for signals, or about to return from that, when its mask was
// read before its event began; then the mask showed none. So it is read again, twice, before the
// thread has used enough CPU time for a signal.
static void confirm(struct cs_agent_thread *t, struct scan *scan) {
  enum { TWICE = 2, AT_ONCE = 50 };
  if (t->mask_reads == TWICE || t->engine == NULL || t->engine == &cs_engine_clock ||
      scan->confirmed == AT_ONCE)
    return;
  scan->confirmed++;
  t->mask_reads++;
  if (cs_ask_is_blocked_now(t)) stop_event(t);
}

static bool scan_thread(struct cs_agent_thread *t, void *data) {
  struct scan *scan = data;
  if (t->tid != 0) confirm(t, scan);
  bool before = t->blocks;
  if (t->tid == 0 || !(is_overdue(t, scan->now_ns) || before)) return true;
  t->blocks = blocks(t);
  if (t->blocks) {
    t->blocked_before_ns = t->blocked_ns;
    t->blocked_ns = scan->now_ns;
    t->to_unblock = true;
    account(t);
    if (before) stop_event(t);
  } else if (lacks_altstack(t)) {
    (void)unsampled(t, true);  // install_altstacks.c counts it
  } else if (before && t->engine == NULL) {
    scan->some_unblock = true;
  }
  return true;
}

void cs_blocked_check(uint64_t now_ns) {
  struct scan scan = {.now_ns = now_ns};
  used.count = 0;
  cs_threads_visit(scan_thread, &scan);
  if (scan.some_unblock) cs_threads_start_engines();
  if (cs_options.event != 0) return;
  // Structs of threads are freed by this thread only.
  for (size_t i = 0; i < used.count; i++)
    send(used.at[i].thread, CS_WIRE_MODE_CPU, used.at[i].cpu_ns, cs_since_start(now_ns));
}

// Returns whether a sample's time is that of a thread which had the signal blocked.
static bool was_blocked(struct cs_agent_thread *t, uint64_t time_ns) {
  if (t->blocked_ns == 0) return false;
  bool unblocks = t->to_unblock && time_ns >= cs_since_start(t->blocked_ns);
  if (unblocks) t->to_unblock = false;  // later ones begin after it
  uint64_t now_ns = cs_clock_now_ns();
  return unblocks || (t->blocked_before_ns != 0 && now_ns - t->blocked_before_ns <= LATELY_NS);
}

uint64_t cs_blocked_split(struct cs_agent_thread *t, uint64_t weight, uint64_t time_ns) {
  uint64_t interval = interval_of(t);
  if (!was_blocked(t, time_ns) || cs_options.event != 0 || weight <= PATIENCE * interval)
    return weight;
  send(t, CS_WIRE_MODE_CPU, weight - interval, time_ns);
  return interval;
}

void cs_blocked_report(void) {
  char text[200];
  if (uncounted_ns == 0) return;
  (void)snprintf(text, sizeof text,
                 "threads that blocked their signals used %.2f s of CPU time meanwhile, of which "
                 "nothing is counted",
                 (double)uncounted_ns / 1e9);
  cs_producer_add_note(&cs_agent.wire, text);
}

void cs_blocked_free(void) {
  free(used.at);
  memset(&used, 0, sizeof used);
}

// ---- Wall time ----

void cs_blocked_ran(struct cs_agent_thread *t, uint64_t now_ns) {
  send(t, CS_WIRE_MODE_WALL, cs_weight_of_blocked(t, now_ns), cs_since_start(now_ns));
}
