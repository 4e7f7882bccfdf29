// SPDX-License-Identifier: MIT
// A thread that runs with its signals blocked takes no sample, and nothing but a signal can find
// out where it runs. What it uses meanwhile is known by its clock. Invariant: that time is part of
// a sample without a stack, and of no other: the sample that the thread takes when it unblocks the
// signal has the weight of a single one. (The thread is sent no second signal: engines/ask.c.) But
// a sample may also be late because its thread was in a long system call, or was put off; so its
// time is taken for blocked only if a look has found the signal blocked in that time, or looks find
// it again and again.
//
// Only threads whose samples are overdue are looked at. One of them blocks the signal if its mask
// in /proc has it, and if the signal that it was sent is pending: code of the runtime and of the C
// library blocks signals for moments. The agent's thread only; the list's lock is held to look, and
// not to send. Signal-safe: no.
#include "sampling/blocked.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/prefix.h"
#include "engines/engines.h"
#include "engines/sigurg.h"
#include "sampling/weight.h"
#include "threads/altstack.h"
#include "threads/threads.h"

enum {
  RAN_NS = 1000000,  // more than a handler takes
  PATIENCE = 2,      // periods without a sample: the time to the next is 1.5 of them at most
  LATELY_NS =
      1000000000,  // if two looks in that time find it blocked, it is blocked in between, too
};

struct used {
  struct cs_agent_thread *thread;
  uint64_t cpu_ns;
};

static struct {
  struct used *at;  // of this look
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

static bool is_in(const char *line, const char *field, int signal) {
  return cs_has_prefix(line, field) &&
         (strtoull(line + strlen(field), NULL, 16) >> (signal - 1) & 1) != 0;
}

static bool blocks(const struct cs_agent_thread *t) {
  char path[64], line[256];
  int signal = cs_sigurg_is_taken() ? SIGURG : cs_threads.signal_number;
  bool masked = false, pending = lacks_altstack(t);
  (void)snprintf(path, sizeof path, "/proc/self/task/%u/status", t->tid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  while (fgets(line, sizeof line, file) != NULL) {
    masked = masked || is_in(line, "SigBlk:\t", signal);
    pending = pending || is_in(line, "SigPnd:\t", signal);
  }
  (void)fclose(file);
  return masked && pending;
}

// The CPU clock of a thread without an engine is kept from look to look.
static uint64_t unsampled(struct cs_agent_thread *t, bool take) {
  if (t->engine != NULL) return t->engine->overdue(t, take);
  if (!lacks_altstack(t)) return 0;
  uint64_t now = cs_cpu_ns_of(t->tid), from = t->unsampled_from;
  if (take || from == 0) t->unsampled_from = now;
  return from != 0 && now > from ? now - from : 0;
}

// Returns whether the thread has run since it was asked, or for long has not taken its signal. One
// that gets no processor may wait for it in a handler, with the signal blocked.
static bool runs_on(struct cs_agent_thread *t, uint64_t now_ns) {
  uint64_t asked = cs_load_relaxed(&t->asked_ns);
  if (now_ns - asked <= most_ns()) return false;
  uint64_t cpu = cs_cpu_ns_of(t->tid);
  if (t->pending_since != asked) t->pending_cpu_ns = cpu;
  t->pending_since = asked;
  return cpu > t->pending_cpu_ns + RAN_NS || now_ns - asked > LATELY_NS;
}

static bool is_overdue(struct cs_agent_thread *t, uint64_t now_ns) {
  if (cs_wants(CS_WIRE_MODE_CPU) && unsampled(t, false) > most_ns()) return true;
  if (!cs_wants(CS_WIRE_MODE_WALL) || t->clr_thread == 0) return false;
  if (lacks_altstack(t)) return now_ns - t->accounted_to_ns > most_ns() && t->proven_ns == 0;
  return (cs_load_acquire(&t->thread->asked) & CS_ASKED_WALL) != 0 && runs_on(t, now_ns);
}

// ---- CPU time ----

static bool add(struct cs_agent_thread *t, uint64_t cpu_ns) {
  if (used.count == used.capacity) {
    size_t capacity = used.capacity != 0 ? used.capacity * 2 : 16;
    struct used *grown = realloc(used.at, capacity * sizeof *grown);
    if (grown == NULL) return false;
    used.at = grown;
    used.capacity = capacity;
  }
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

static bool look_at(struct cs_agent_thread *t, void *data) {
  uint64_t now_ns = *(const uint64_t *)data;
  if (t->tid == 0 || !(is_overdue(t, now_ns) || t->blocks)) return true;
  t->blocks = blocks(t);
  if (t->blocks) {
    t->blocked_before_ns = t->blocked_ns;
    t->blocked_ns = now_ns;
    t->to_unblock = true;
    account(t);
  } else if (lacks_altstack(t)) {
    (void)unsampled(t, true);  // install_altstacks.c counts it
  }
  return true;
}

void cs_blocked_check(uint64_t now_ns) {
  used.count = 0;
  cs_threads_visit(look_at, &now_ns);
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
  uint64_t period = cs_load_acquire(&cs_agent.period_ns);
  if (!was_blocked(t, time_ns) || cs_options.event != 0 || weight <= most_ns()) return weight;
  send(t, CS_WIRE_MODE_CPU, weight - period, time_ns);
  return period;
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
