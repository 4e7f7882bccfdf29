// SPDX-License-Identifier: MIT
// Which engine makes threads take samples of mode cpu, and what is told of it. Signal-safe: no.
//
// Invariants: a thread has one engine at a time, and none once it is not sampled any more; engines
// are tried in the order of their quality, each at most once in a recording until it is abandoned;
// why one was not had is kept for the user. Threads: all that is of one thread is under the lock of
// the list of threads (threads.c), and so is `state`, but for what only the agent's thread reads.
#include "sampling/engine.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

// In the order of their quality. Without the kernel's time shares are wrong where threads make
// system calls (by 54 points in tests/apps/Engine), so that is for those who ask for it.
static const struct cs_engine *const engines[] = {&cs_engine_perf, &cs_engine_clock,
                                                  &cs_engine_timer, &cs_engine_perf_user};

enum standing { UNTRIED, WORKS, REFUSED };

static struct {
  enum standing standing[CS_COUNT(engines)];
  char why[600];    // of all that were refused
  uint64_t cpu_ns;  // of threads that are not sampled any more
  uint32_t others, without;
  bool news;  // the wire does not have it yet
} state;

// ---- Clocks ----

// clock_getcpuclockid has it for processes only.
clockid_t cs_cpu_clock_of(uint32_t tid) {
  return (clockid_t)(~tid << 3 | 6u);  // CPUCLOCK_PERTHREAD_MASK 4 | CPUCLOCK_SCHED 2
}

uint64_t cs_cpu_ns_of(uint32_t tid) {
  struct timespec t;
  if (clock_gettime(cs_cpu_clock_of(tid), &t) != 0) return 0;
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t cs_first_of(uint64_t period_ns) {
  uint64_t x = cs_tsc() * 0x9E3779B97F4A7C15ull;
  return 1 + (x >> 32) % period_ns;
}

uint64_t cs_clocked_from_now(struct cs_agent_thread *t, uint64_t first_ns, uint64_t whole_ns) {
  uint64_t now = cs_cpu_ns_of(t->tid);
  cs_store_relaxed(&t->thread->cpu_ns, now + first_ns - whole_ns);
  return now;
}

// ---- The order ----

static bool is_mode_on(void) {
  return (cs_agent.modes & CS_WIRE_MODE_BIT(CS_WIRE_MODE_CPU)) != 0;
}

// Only perf counts anything else than time, and only in the kernel does it see the kernel.
static bool is_asked_for(const struct cs_engine *engine) {
  if (cs_agent.event != 0 && engine->kind != CS_WIRE_ENGINE_PERF) return false;
  if (cs_agent.kernel && engine != &cs_engine_perf) return false;
  return cs_agent.engine == CS_WIRE_ENGINE_AUTO || cs_agent.engine == engine->kind;
}

static void note_why(const struct cs_engine *engine, const struct cs_error *why) {
  size_t used = strlen(state.why);
  state.news = true;
  if (strstr(state.why, why->text) != NULL) return;
  (void)snprintf(state.why + used, sizeof state.why - used, "%s%s: %s", used > 0 ? "; " : "",
                 cs_wire_engine_name(engine->kind), why->text);
}

static bool can_be_had(size_t i) {
  struct cs_error why = {""};
  if (state.standing[i] == UNTRIED) {
    bool works = engines[i]->begin == NULL || engines[i]->begin(&why);
    state.standing[i] = works ? WORKS : REFUSED;
    if (!works) note_why(engines[i], &why);
  }
  return state.standing[i] == WORKS;
}

// The one that most threads are to have; NULL: none is left.
static const struct cs_engine *best(void) {
  for (size_t i = 0; i < CS_COUNT(engines); i++)
    if (is_asked_for(engines[i]) && can_be_had(i)) return engines[i];
  return NULL;
}

bool cs_engines_begin(struct cs_error *err) {
  memset(&state, 0, sizeof state);
  if (!is_mode_on()) return true;
  if (best() == NULL) {
    if (state.why[0] == '\0')
      return cs_error_set(err, "the engine %s does not do what is asked for",
                          cs_wire_engine_name(cs_agent.engine));
    return cs_error_set(err, "there is no engine for cpu mode: %s", state.why);
  }
  state.news = true;
  return true;
}

void cs_engines_end(void) {
  for (size_t i = 0; i < CS_COUNT(engines); i++)
    if (state.standing[i] == WORKS && engines[i]->end != NULL) engines[i]->end();
}

// ---- A thread ----

void cs_engine_start(struct cs_agent_thread *t) {
  const struct cs_engine *first = NULL;
  struct cs_error why;
  for (size_t i = 0; i < CS_COUNT(engines); i++) {
    why.text[0] = '\0';
    if (!is_asked_for(engines[i]) || !can_be_had(i)) continue;
    if (first == NULL) first = engines[i];
    t->clock_from = t->clock_to = cs_cpu_ns_of(t->tid);
    if (engines[i]->start(t, &why)) {
      t->engine = engines[i];
      if (t->engine != first) state.others++;
      return;
    }
    if (why.text[0] == '\0') return;  // it has ended
    if (state.others + state.without == 0) note_why(engines[i], &why);
  }
  cs_log_important("some threads are not sampled: %s", why.text);
  state.without++;
}

// A thread that has ended without a word tells its time no more; its last sample has.
void cs_engine_stop(struct cs_agent_thread *t) {
  if (t->engine == NULL) return;
  uint64_t now = cs_cpu_ns_of(t->tid);
  t->engine->stop(t);
  t->engine = NULL;
  if (now == 0) now = t->clock_to;
  if (now > t->clock_from) state.cpu_ns += now - t->clock_from;
}

void cs_engine_change(struct cs_agent_thread *t) {
  if (t->engine != NULL && t->engine->change != NULL) t->engine->change(t);
}

// ---- The agent's loop ----

static bool change_over(struct cs_agent_thread *t, void *data) {
  if (t->engine != data) return true;
  cs_engine_stop(t);
  cs_engine_start(t);
  return true;
}

void cs_engine_abandon(const struct cs_engine *engine, const struct cs_error *why) {
  for (size_t i = 0; i < CS_COUNT(engines); i++)
    if (engines[i]->kind == engine->kind) state.standing[i] = REFUSED;
  note_why(engine, why);
  cs_log("the engine %s is given up: %s", cs_wire_engine_name(engine->kind), why->text);
  cs_threads_visit(change_over, (void *)(uintptr_t)engine);
  if (engine->end != NULL) engine->end();
}

uint64_t cs_engines_turn(uint64_t now_ns) {
  uint64_t next = UINT64_MAX;
  if (!is_mode_on()) return next;
  for (size_t i = 0; i < CS_COUNT(engines); i++) {
    if (state.standing[i] != WORKS || engines[i]->turn == NULL) continue;
    uint64_t at = engines[i]->turn(now_ns);
    if (at < next) next = at;
  }
  if (state.news) (void)cs_engines_tell();
  return next;
}

bool cs_engines_tell(void) {
  if (!is_mode_on()) return true;
  const struct cs_engine *engine = best();
  struct cs_wire_engine told = {
      .cpu_ns = state.cpu_ns,
      .asked = (uint32_t)cs_agent.engine,
      .had = (uint32_t)(engine != NULL ? engine->kind : CS_WIRE_ENGINE_AUTO),
      .others = state.others,
      .without = state.without,
  };
  const char *unseen = engine != NULL && engine->unseen != NULL ? engine->unseen() : "";
  const char *strings[] = {state.why, unseen};
  state.news = false;
  return cs_producer_put(&cs_agent.wire, CS_WIRE_ENGINE, &told, sizeof told, strings, 2);
}
