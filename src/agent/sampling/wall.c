// SPDX-License-Identifier: MIT
// Wall mode: in every period a sample of each managed thread, whether it runs or waits. One that is
// blocked in the kernel is walked from here and does not wake (threads/asleep.h): no EINTR in
// foreign code; and only once, as long as it has not run since. All others get a signal. Native
// threads are left out: the runtime's own sleep mostly. The agent's thread only. Signal-safe: no.
//
// A thread that is found running but mostly sleeps is looked at again a few times, 50 us apart, all
// such threads together: a signal could meet it on its way to sleep. A thread that has not taken
// its signal yet is left out; what it misses is in the weight of its next sample.
//
// Invariant: the threads of a tick are pinned while it works on them without the lock of the list,
// so none of them ends before it is done with it.
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "sampling/agent.h"
#include "threads/asleep.h"

enum { TRIES = 3 };

struct due {
  struct cs_agent_thread *agent;
  struct cs_thread *thread;             // pinned
  const struct cs_sample_event *event;  // that it is because of; NULL: it is in time
};
static struct due *due;
static size_t due_count, due_capacity;

// ---- The list ----

static bool add_due(struct cs_agent_thread *t) {
  if (due_count == due_capacity) {
    size_t capacity = due_capacity != 0 ? due_capacity * 2 : 64;
    struct due *larger = realloc(due, capacity * sizeof *due);
    if (larger == NULL) return false;
    due = larger;
    due_capacity = capacity;
  }
  if (!cs_thread_pin(t->thread, t->clr_thread)) return true;  // it is ending
  due[due_count++] = (struct due){t, t->thread, NULL};
  return true;
}

struct tick {
  uint64_t now;
  uint32_t part, parts;
};

static bool collect(struct cs_agent_thread *t, void *data) {
  const struct tick *tick = data;
  if (t->clr_thread == 0 || t->tid == 0 || t->id % tick->parts != tick->part) return true;
  cs_drain_note_put_off(t, tick->now);
  if ((cs_load_acquire(&t->thread->asked) & CS_ASKED_WALL) != 0) return true;
  if (add_due(t)) return true;
  cs_log_important("no memory for the list of threads: not all are sampled");
  return false;
}

// ---- One thread ----

static void ask(const struct due *d, uint64_t now) {
  if (cs_tsc() < cs_load_relaxed(&d->thread->rest.until))
    cs_drain_put_off(d->agent, now);
  else
    cs_ask(d->agent, d->thread, CS_ASKED_WALL, 0);
}

// Only a complete walk is kept: what a sleeper's registers do not lead to, its own may.
static enum cs_asleep_answer sample_asleep(struct cs_asleep *asleep, const struct due *d) {
  struct cs_sample_place place;
  struct cs_sampled sampled = {.world = &asleep->world,
                               .thread = d->thread,
                               .agent = d->agent,
                               .regs = &asleep->regs,
                               .stack = &asleep->stack};
  enum cs_asleep_answer answer = cs_asleep_begin(asleep, d->thread);
  if (answer != CS_ASLEEP_YES) return answer;
  bool written = cs_sample_draft(&cs_agent.ring, &place, &sampled);
  if (written && cs_sample_has_label(place.sample)) cs_asleep_read_beyond(asleep);
  bool valid = cs_asleep_end(asleep);
  if (!written) return CS_ASLEEP_YES;  // lost, and counted
  bool complete = place.sample->stop == CS_STOP_BASE;
  if (d->event != NULL) {
    place.sample->tsc = d->event->tsc;
    place.sample->weight = d->event->weight;
    place.sample->mode = d->event->mode;
  }
  if (valid && complete)
    cs_sample_keep(&cs_agent.ring, &place);
  else
    cs_sample_drop(&place);
  d->agent->written_to = cs_load_acquire(&cs_agent.ring.head);
  d->agent->slept_runs = asleep->runs;
  if (!valid) return CS_ASLEEP_MOVED;
  return complete ? CS_ASLEEP_YES : CS_ASLEEP_NO;
}

static enum cs_asleep_answer look_at(const struct due *d) {
  static struct cs_asleep asleep;
  enum cs_asleep_answer answer = CS_ASLEEP_NO;
  if (cs_load_acquire(&d->thread->sampling) == 0) return CS_ASLEEP_YES;  // it is not to be sampled
  for (int i = 0; i < TRIES; i++) {
    uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
    answer = sample_asleep(&asleep, d);
    cs_epoch_leave(&cs_signal.epoch, parity);
    if (answer != CS_ASLEEP_MOVED) break;
  }
  return answer;
}

// ---- A tick ----

// As it was at its last sample.
static bool sleeps_on(const struct due *d, uint64_t now) {
  return d->agent->repeatable && cs_load_acquire(&d->thread->sampling) != 0 &&
         cs_asleep_stays(d->thread, d->agent->slept_runs) && cs_drain_again(d->agent, now);
}

// True: it is done with. Else it is to be looked at again.
static bool sample(const struct due *d, bool last, uint64_t now) {
  enum cs_asleep_answer answer = sleeps_on(d, now) ? CS_ASLEEP_YES : look_at(d);
  if (answer == CS_ASLEEP_RUNNING && !last) return false;
  if (answer == CS_ASLEEP_RUNNING) cs_asleep_give_up(d->thread);
  if (answer != CS_ASLEEP_YES) ask(d, now);
  cs_thread_unpin(d->thread);
  return true;
}

void cs_wall_tick(uint64_t now_ns, uint32_t part, uint32_t parts) {
  struct tick tick = {now_ns, part, parts};
  due_count = 0;
  cs_threads_visit(collect, &tick);
  for (int look = 0; due_count != 0; look++) {
    size_t left = 0;
    if (look != 0) (void)usleep(CS_ASLEEP_NAP_US);
    for (size_t i = 0; i < due_count; i++)
      if (!sample(&due[i], look == CS_ASLEEP_PATIENCE, now_ns)) due[left++] = due[i];
    due_count = left;
  }
}

void cs_wall_walk_waiting(struct cs_agent_thread *thread, struct cs_thread *pinned,
                          const struct cs_sample_event *event) {
  struct due one = {thread, pinned, event};
  (void)look_at(&one);
}

void cs_wall_free(void) {
  free(due);
  due = NULL;
  due_count = due_capacity = 0;
}
