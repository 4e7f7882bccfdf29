// SPDX-License-Identifier: MIT
// Samples all managed threads. A thread that is blocked in the kernel is walked by the agent's
// thread and not woken (threads/asleep.h), so that foreign code gets no EINTR; and only once, as
// long as it does not run. All others are sent a signal. Native threads are left out: most are the
// runtime's own, and asleep.
//
// A thread that is found running but mostly sleeps is checked again a few times, 50 us apart,
// together with all others like it: a signal could catch it on its way to sleep. A thread that has
// not taken its last signal yet is left out; the weight of its next sample includes what it misses,
// unless it blocks its signals (sampling/blocked.h): it is walked while it sleeps, and not asked.
//
// Invariant: the threads of a tick are pinned while they are worked on without the list's lock, so
// none of them ends meanwhile. The agent's thread only. Signal-safe: no.
#include "sampling/wall.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engines/ask.h"
#include "sampling/blocked.h"
#include "sampling/reported_regs.h"
#include "sampling/weight.h"
#include "signal/awaits.h"
#include "state/event_names.h"

enum { TRIES = 3, AHEAD = 16 };

enum { NOT_SUSPENDED = -1 };

#define NO_MEMORY "no memory for the list of threads: not all are sampled"

static struct cs_thread_list all;
static struct cs_pinned_list due;
static int suspended_for = NOT_SUSPENDED;  // atomic; COR_PRF_SUSPEND_REASON

// ---- One thread ----

static void ask(const struct cs_pinned *d, uint64_t now) {
  if (cs_ask_is_blocked(d->agent))
    cs_blocked_ran(d->agent, now);
  else if (cs_tsc() < cs_load_relaxed(&d->thread->cooldown.until))
    cs_weight_put_off(d, now);
  else
    (void)cs_ask_sample(d->agent, d->thread, CS_ASKED_WALL, 0);
}

void cs_wall_suspending(uint32_t reason) {
  cs_store_release(&suspended_for, (int)reason);
}

void cs_wall_resumed(void) {
  cs_store_release(&suspended_for, (int)NOT_SUSPENDED);
}

// Returns the event name that stands for the runtime's frames of a thread that the runtime has
// stopped, or 0 if it has not. A thread that returns from native code meanwhile, or that waits to
// start a collection, is not recognised.
static uint32_t suspension_name(const struct cs_asleep *asleep) {
  int reason = cs_load_acquire(&suspended_for);
  if (!cs_asleep_is_suspended(asleep)) return 0;
  bool collection = reason == COR_PRF_SUSPEND_FOR_GC || reason == COR_PRF_SUSPEND_FOR_GC_PREP;
  return cs_event_name_of(collection ? "[waits for GC]" : "[waits for the runtime to resume]");
}

static void count_lost(uint32_t mode) {
  cs_add_relaxed(&cs_agent.ring.lost_events[mode], 1);
}

// Takes a sample for the event or the hold, or, if both are NULL, for the tick. Where the few
// registers that /proc has do not lead to the stack's base, the thread is asked for the others, and
// sampled in the next scan; or, if it is not to be asked, sampled as far as they lead.
static enum cs_asleep_answer sample_asleep(struct cs_asleep *asleep, const struct cs_pinned *d,
                                           const struct cs_sample_event *event,
                                           const struct cs_hold *hold) {
  struct cs_sample_place place;
  const struct cs_awaits *awaits = cs_load_acquire(&cs_signal.awaits);
  struct cs_sampled sampled = {.copied = true,
                               .stops = awaits != NULL ? cs_load_acquire(&awaits->stops) : 0,
                               .world = &asleep->world,
                               .thread = d->thread,
                               .agent = d->agent,
                               .regs = &asleep->regs,
                               .stack = &asleep->stack};
  enum cs_asleep_answer answer = cs_asleep_begin(asleep, d->thread, 0);
  if (answer != CS_ASLEEP_YES) return answer;
  bool tick = event == NULL && hold == NULL;
  if (hold != NULL && !cs_hold_lasts(&asleep->world, d->thread, hold)) {
    cs_add_relaxed(&cs_agent.ring.released, hold->weight);
    (void)cs_asleep_end(asleep);
    return CS_ASLEEP_YES;
  }
  bool reported = cs_reported_regs_use(d, &asleep->regs);
  uint32_t suspended = tick ? suspension_name(asleep) : 0;
  bool written = cs_sample_draft(&cs_agent.ring, &place, &sampled);
  if (written && cs_sample_has_label(place.sample)) cs_asleep_read_beyond(asleep);
  bool valid = cs_asleep_end(asleep);
  if (!written) {  // lost, and counted
    if (!tick) count_lost(event != NULL ? event->mode : hold->mode);
    return CS_ASLEEP_YES;
  }
  bool complete = place.sample->stop == CS_STOP_BASE;
  if (valid && reported && !cs_reported_regs_fit(d, place.sample)) {
    cs_sample_drop(&place);
    return CS_ASLEEP_MOVED;
  }
  place.sample->type = suspended;
  if (event != NULL) {
    place.sample->tsc = event->tsc;
    place.sample->weight = event->weight;
    place.sample->mode = event->mode;
  }
  if (hold != NULL) cs_hold_write(place.sample, hold);
  bool asked =
      tick && valid && !complete && !reported && cs_reported_regs_ask(d, place.sample->stop);
  bool kept = valid && !asked && (complete || tick);
  if (!reported && place.sample->stop == CS_STOP_NATIVE_RULE) place.sample->stop = CS_STOP_ASLEEP;
  if (kept)
    cs_sample_keep(&cs_agent.ring, &place);
  else
    cs_sample_drop(&place);
  d->agent->written_to = cs_load_acquire(&cs_agent.ring.head);
  if (tick) d->agent->slept_runs = kept ? asleep->runs : 0;
  if (!valid) return CS_ASLEEP_MOVED;
  if (tick) d->agent->reported.wanting = !complete && !reported;
  return kept || asked ? CS_ASLEEP_YES : CS_ASLEEP_NO;
}

static enum cs_asleep_answer walk_asleep(const struct cs_pinned *d,
                                         const struct cs_sample_event *event,
                                         const struct cs_hold *hold) {
  static struct cs_asleep asleep;
  enum cs_asleep_answer answer = CS_ASLEEP_NO;
  if (cs_load_acquire(&d->thread->sampling) == 0) return CS_ASLEEP_YES;  // no longer sampled
  for (int i = 0; i < TRIES; i++) {
    uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
    answer = sample_asleep(&asleep, d, event, hold);
    cs_epoch_leave(&cs_signal.epoch, parity);
    if (answer != CS_ASLEEP_MOVED) break;
  }
  return answer;
}

// ---- A tick ----

// Returns whether the thread's last sample still describes it.
static bool sleeps_on(const struct cs_pinned *d, uint64_t now) {
  return cs_load_acquire(&d->thread->sampling) != 0 &&
         !(d->agent->reported.wanting && cs_reported_regs_may_ask(d)) &&
         cs_repeats_for_certain(d, now);
}

// Samples the thread and unpins it. Returns false if it is to be checked again.
static bool sample(const struct cs_pinned *d, bool last) {
  enum cs_asleep_answer answer = walk_asleep(d, NULL, NULL);
  if (answer == CS_ASLEEP_RUNNING && !last) return false;
  if (answer == CS_ASLEEP_RUNNING) cs_asleep_give_up(d->thread);
  if (answer != CS_ASLEEP_YES) ask(d, cs_clock_now_ns());
  cs_thread_unpin(d->thread);
  return true;
}

// Pins the thread and adds it to those to be sampled, unless it has not run.
static void find_due(struct cs_agent_thread *t, uint64_t now_ns) {
  struct cs_pinned d;
  if (t->tid == 0 || cs_repeats_last_sample(t, now_ns) || !cs_threads_pin(t, &d)) return;
  cs_weight_note_put_off(&d, now_ns);
  bool asked = (cs_load_acquire(&d.thread->asked) & CS_ASKED_WALL) != 0;
  if ((!asked || t->blocks) && !sleeps_on(&d, now_ns)) {
    cs_repeats_send(t);
    if (cs_pinned_keep(&due, &d)) return;
    cs_log_important(NO_MEMORY);
  }
  cs_thread_unpin(d.thread);
}

static void find_all_due(uint64_t now_ns, uint32_t part, uint32_t parts) {
  due.count = 0;
  if (!cs_threads_list(&all)) cs_log_important(NO_MEMORY);
  cs_repeats_begin_scan(all.count * 1000000000ull / cs_load_acquire(&cs_agent.period_ns));
  for (size_t i = part; i < all.count; i += parts) {
    if (i + AHEAD < all.count) __builtin_prefetch(all.at[i + AHEAD], 1);
    find_due(all.at[i], now_ns);
  }
}

void cs_wall_tick(uint64_t now_ns, uint32_t part, uint32_t parts) {
  find_all_due(now_ns, part, parts);
  for (int naps = 0; due.count != 0; naps++) {
    size_t left = 0;
    if (naps != 0) (void)usleep(CS_ASLEEP_NAP_US);
    for (size_t i = 0; i < due.count; i++)
      if (!sample(&due.at[i], naps == CS_ASLEEP_PATIENCE)) due.at[left++] = due.at[i];
    due.count = left;
  }
}

size_t cs_wall_threads(void) {
  return all.count;
}

void cs_wall_walk_waiting(const struct cs_pinned *thread, const struct cs_sample_event *event) {
  (void)walk_asleep(thread, event, NULL);
}

enum cs_asleep_answer cs_wall_walk_holder(const struct cs_pinned *thread,
                                          const struct cs_hold *hold) {
  return walk_asleep(thread, NULL, hold);
}

void cs_wall_free(void) {
  cs_pinned_free(&due);
  free(all.at);
  all = (struct cs_thread_list){.at = NULL};
}
