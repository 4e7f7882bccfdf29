// SPDX-License-Identifier: MIT
// Weights of samples. Invariant: in wall mode each moment of a thread is counted once: by the
// sample that follows it, or, if it passed while a signal was put off, by the next sample by
// signal; or as uncovered, if it passed long before the thread's first sample, which says nothing of
// it. The agent's thread only. Signal-safe: no.
#include "sampling/weight.h"

#include "base/clock.h"

// The first look at a thread may be late, as at a program's start.
enum { FIRST_PERIODS = 2 };

static struct cs_wire_put_off put_off;
static uint32_t most_bare;  // of a thread, events without a stack
static uint64_t lost_repeats;
static uint64_t late_first_ns;  // what first samples do not stand for

void cs_weights_start(void) {
  put_off = (struct cs_wire_put_off){0};
  most_bare = 0;
  lost_repeats = late_first_ns = 0;
}

// ---- Wall time ----

// The time since the thread's last sample. Of that, a thread that slept was awake until a signal
// was put off, which is no part of its sleep: its next sample by signal stands for it.
static uint64_t time_since_last(struct cs_agent_thread *t, uint64_t now_ns, bool slept) {
  uint64_t from = t->accounted_to_ns > cs_agent.start_ns ? t->accounted_to_ns : cs_agent.start_ns;
  if (now_ns <= from) return 0;
  uint64_t most = FIRST_PERIODS * cs_load_acquire(&cs_agent.period_ns);
  if (!t->weighed && now_ns - from > most) {
    late_first_ns += now_ns - from - most;
    from = now_ns - most;
  }
  t->weighed = true;
  if (slept && t->put_off_ns > from) {
    uint64_t until = t->put_off_ns < now_ns ? t->put_off_ns : now_ns - 1;
    t->owed_ns += until - from;
    from = until;
  }
  t->accounted_to_ns = now_ns;
  return now_ns - from;
}

bool cs_weight_repeat(struct cs_agent_thread *t, uint64_t now_ns) {
  struct cs_sample_ring *ring = &cs_agent.ring;
  if (!t->repeatable || cs_load_acquire(&ring->tail) < t->written_to) return false;
  struct cs_wire_again again = {cs_since_start(now_ns), time_since_last(t, now_ns, true), t->id, 0};
  cs_add_relaxed(&ring->asleep, 1);
  cs_add_relaxed(&ring->samples, 1);
  if (!cs_threads_announce(t) || !cs_send(CS_WIRE_AGAIN, &again, sizeof again)) lost_repeats++;
  return true;
}

uint64_t cs_weight_uncovered_ns(void) {
  return late_first_ns + cs_threads_unsampled_ends_ns();
}

uint64_t cs_weight_lost_repeats(void) {
  return lost_repeats;
}

// ---- Put off ----

void cs_weight_note_put_off(struct cs_agent_thread *t, uint64_t now_ns) {
  uint32_t ever = cs_load_relaxed(&t->thread->rest.ever);
  if (ever == t->put_off) return;
  t->put_off = ever;
  t->put_off_ns = now_ns;
}

// Names the thread whose samples were put off because one took the longest.
static void count_samples(const struct cs_agent_thread *t, uint32_t samples) {
  put_off.samples += samples;
  if (samples == 0 || t->held_ns < put_off.longest_ns) return;
  put_off.longest_ns = t->held_ns;
  put_off.thread = t->id;
}

void cs_weight_put_off(struct cs_agent_thread *t, uint64_t now_ns) {
  count_samples(t, 1);
  t->put_off_ns = now_ns;
}

// Names the thread with the most of them: not the length of a walk leads to that, but their number.
static void count_bare(struct cs_agent_thread *t) {
  put_off.events++;
  if (++t->bare <= most_bare) return;
  most_bare = t->bare;
  put_off.bare_thread = t->id;
}

static void count_put_off(const struct cs_sample *s, struct cs_agent_thread *t) {
  count_samples(t, s->put_off);
  if (s->stop == CS_STOP_PUT_OFF) count_bare(t);
  if (s->cause != CS_CAUSE_NONE) t->held_ns = cs_clock_ticks_to_ns(s->held_ticks);
}

bool cs_weight_report_put_off(void) {
  return put_off.samples + put_off.events == 0 ||
         cs_send(CS_WIRE_PUT_OFF, &put_off, sizeof put_off);
}

// ---- A sample ----

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
