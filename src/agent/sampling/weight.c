// SPDX-License-Identifier: MIT
// Weights of samples. Invariant: in wall mode, each moment of a thread is counted once: by the
// sample that follows it; if a signal was put off then, by the next sample by signal; if it was
// long before the thread's first sample, which says nothing about it, as uncovered; and not at all
// if the whole process was stopped. The agent's thread only. Signal-safe: no.
#include "sampling/weight.h"

#include <stdlib.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "engines/engine.h"
#include "state/halts.h"
#include "threads/asleep.h"

// The first scan that finds a thread may be late, for example at a program's start.
enum { FIRST_PERIODS = 2 };

static struct cs_wire_put_off put_off;
static uint32_t most_stackless;  // of a thread, events without a stack
static uint64_t lost_repeats;
static uint64_t late_first_ns;  // time before first samples that they do not stand for

void cs_weights_start(void) {
  put_off = (struct cs_wire_put_off){0};
  most_stackless = 0;
  lost_repeats = late_first_ns = 0;
}

// ---- Wall time ----

static uint64_t without_halts(uint64_t from, uint64_t to) {
  if (to - from >= CS_HALT_LEAST_NS) cs_halts_check(0);
  return to - from - cs_halts_within(from, to);
}

// Returns the time since the thread's last sample. If the thread slept, it was awake until a signal
// was last put off; that time is not part of its sleep, and its next sample by signal stands for
// it.
static uint64_t time_since_last(struct cs_agent_thread *t, uint64_t now_ns, bool slept) {
  uint64_t from = t->accounted_to_ns > cs_agent.start_ns ? t->accounted_to_ns : cs_agent.start_ns;
  if (now_ns <= from) return 0;
  uint64_t most = FIRST_PERIODS * cs_load_acquire(&cs_agent.period_ns);
  if (!t->weighed && now_ns - from > most) {
    late_first_ns += without_halts(from, now_ns - most);
    from = now_ns - most;
  }
  t->weighed = true;
  if (slept && t->put_off_ns > from) {
    uint64_t until = t->put_off_ns < now_ns ? t->put_off_ns : now_ns - 1;
    t->owed_ns += without_halts(from, until);
    from = until;
  }
  t->accounted_to_ns = now_ns;
  return without_halts(from, now_ns);
}

uint64_t cs_weight_uncovered_ns(void) {
  return late_first_ns + cs_threads_unsampled_ends_ns();
}

uint64_t cs_weight_lost_repeats(void) {
  return lost_repeats;
}

// ---- Put off ----

// The thread is pinned, but the lock is not held, so `agent->thread` is NULL if the thread has
// begun to end.
void cs_weight_note_put_off(const struct cs_pinned *d, uint64_t now_ns) {
  struct cs_agent_thread *t = d->agent;
  uint32_t ever = cs_load_relaxed(&d->thread->cooldown.ever);
  if (ever == t->put_off) return;
  t->put_off = ever;
  t->put_off_ns = now_ns;
}

// Notes the thread whose samples were put off after the most expensive sample.
static void count_samples(const struct cs_agent_thread *t, uint32_t samples, uint64_t cost_ns) {
  put_off.samples += samples;
  if (samples == 0 || cost_ns < put_off.longest_ns) return;
  put_off.longest_ns = cost_ns;
  put_off.thread = t->id;
}

void cs_weight_put_off(const struct cs_pinned *d, uint64_t now_ns) {
  count_samples(d->agent, 1, cs_load_relaxed(&d->thread->cooldown.cost_ns));
  d->agent->put_off_ns = now_ns;
}

// Notes the thread with the most events without a stack: these come from the number of walks, not
// from their length.
static void count_bare(struct cs_agent_thread *t) {
  put_off.events++;
  if (++t->stackless <= most_stackless) return;
  most_stackless = t->stackless;
  put_off.stackless_thread = t->id;
}

static void count_put_off(const struct cs_sample *s, struct cs_agent_thread *t) {
  count_samples(t, s->put_off, s->put_off_by_ns);
  if (s->stop == CS_STOP_PUT_OFF) count_bare(t);
}

bool cs_weight_report_put_off(void) {
  return put_off.samples + put_off.events == 0 ||
         cs_send(CS_WIRE_PUT_OFF, &put_off, sizeof put_off);
}

// ---- A sample ----

uint64_t cs_weight_of_blocked(struct cs_agent_thread *t, uint64_t now_ns) {
  t->weighed = true;  // all of it is accounted for
  uint64_t weight = time_since_last(t, now_ns, false) + t->owed_ns;
  t->owed_ns = 0;
  return weight;
}

uint64_t cs_weight_of(const struct cs_sample *s, enum cs_wire_mode mode) {
  struct cs_agent_thread *t = s->agent;
  count_put_off(s, t);
  if (mode != CS_WIRE_MODE_WALL) return s->weight;
  bool slept = s->cause != CS_CAUSE_WALL;
  uint64_t weight = time_since_last(t, cs_clock_tsc_to_ns(s->tsc), slept);
  if (!slept) {
    weight += t->owed_ns;
    t->owed_ns = 0;
  }
  return weight;
}

// ---- Threads that have not run ----
//
// A thread's CPU clock shows cheaply that it has not run: reading it is a system call of 0.26 us,
// while the run count takes 1.5 us (a file of /proc), and the process's total of runs visits all
// its threads. To run takes CPU time; but a kernel may take so short a run for time that a
// hypervisor or an interrupt has stolen. So every 500 ms the run count, which is exact, is read as
// well. The clock is read before its run count, so a thread that runs in between is found to have
// run.
//
// The time for which a thread has not run is sent before its next sample is taken. With more than
// RECORDS checks of threads a second, one record stands for several.

#define PROOF_NS 500000000ull
enum { RECORDS = 20000, MOST_SCANS = 10 };

static uint32_t scans_of_record = 1;

static bool may_repeat(const struct cs_agent_thread *t) {
  return t->repeatable && cs_load_acquire(&cs_agent.ring.tail) >= t->written_to;
}

static void repeat(struct cs_agent_thread *t, uint64_t now_ns) {
  struct cs_sample_ring *ring = &cs_agent.ring;
  struct cs_wire_repeat again = {cs_since_start(now_ns), time_since_last(t, now_ns, true), t->id,
                                 0};
  cs_add_relaxed(&ring->asleep, 1);
  cs_add_relaxed(&ring->samples, 1);
  if (!cs_threads_announce(t) || !cs_send(CS_WIRE_REPEAT, &again, sizeof again)) lost_repeats++;
}

// Reads the clock by a system call: the vDSO, which the C library tries first, does not have it.
// Returns 0 if the thread has ended.
static uint64_t cpu_ns_of(uint32_t tid) {
  struct timespec t = {0, 0};
  (void)cs_syscall4(SYS_clock_gettime, (long)cs_cpu_clock_of(tid), (long)(uintptr_t)&t, 0, 0);
  return cs_timespec_ns(t);
}

void cs_repeats_begin_scan(uint64_t checks) {
  uint64_t most = checks / RECORDS + 1;
  scans_of_record = most < MOST_SCANS ? (uint32_t)most : MOST_SCANS;
}

void cs_repeats_send(struct cs_agent_thread *t) {
  if (t->repeats == 0) return;
  repeat(t, t->rested_to_ns);
  t->repeats = 0;
}

static void count(struct cs_agent_thread *t, uint64_t now_ns) {
  t->rested_to_ns = now_ns;
  if (++t->repeats >= scans_of_record) cs_repeats_send(t);
}

bool cs_repeats_last_sample(struct cs_agent_thread *t, uint64_t now_ns) {
  if (t->proven_ns == 0 || now_ns - t->proven_ns >= PROOF_NS || !may_repeat(t) ||
      cpu_ns_of(t->tid) != t->rested_cpu_ns)
    return false;
  count(t, now_ns);
  return true;
}

bool cs_repeats_for_certain(const struct cs_pinned *d, uint64_t now_ns) {
  struct cs_agent_thread *t = d->agent;
  uint64_t cpu = cpu_ns_of(t->tid);
  t->proven_ns = 0;
  if (!may_repeat(t) || !cs_asleep_stays(d->thread, t->slept_runs)) return false;
  t->rested_cpu_ns = cpu;
  t->proven_ns =
      t->reported.wanting ? 0 : now_ns;  // 0: it is asked for its registers as soon as possible
  count(t, now_ns);
  return true;
}

void cs_repeats_end(void) {
  struct cs_thread_list all = {.at = NULL};
  (void)cs_threads_list(&all);
  for (size_t i = 0; i < all.count; i++) cs_repeats_send(all.at[i]);
  free(all.at);
}

// Returns whether the thread has slept since the last scan.
static bool sleeps_on(struct cs_agent_thread *t) {
  struct cs_pinned d;
  if (!cs_threads_pin(t, &d)) return false;
  bool stays = cs_asleep_stays(d.thread, t->slept_runs);
  cs_thread_unpin(d.thread);
  return stays;
}

bool cs_sleepers_have_run(void) {
  struct cs_thread_list all = {.at = NULL};
  size_t slept = 0;
  bool have_run = cs_threads_list(&all);
  for (size_t i = 0; i < all.count && have_run; i++) {
    if (all.at[i]->slept_runs == 0) continue;
    slept++;
    have_run = !sleeps_on(all.at[i]);
  }
  free(all.at);
  return have_run && slept > 0;
}
