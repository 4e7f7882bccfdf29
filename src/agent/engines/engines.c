// SPDX-License-Identifier: MIT
// Chooses the engine. Invariants: a thread has at most one engine, and none once it is no longer
// sampled; engines are tried in the order of their quality, each at most once in a recording, and
// not again after it has failed; the reason is kept for the user. Threads: those that begin or end,
// with the list's lock held, which guards `state`; and the agent's. Signal-safe: no.
#include "engines/engines.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

// In the order of their quality. Without the kernel's time, shares are wrong where threads make
// system calls (by 54 points in tests/apps/Engine), so cs_engine_perf_user is used only on request.
static const struct cs_engine *const engines[] = {&cs_engine_perf, &cs_engine_clock,
                                                  &cs_engine_perf_user};

enum standing { UNTRIED, WORKS, REFUSED };

static struct {
  enum standing standing[CS_COUNT(engines)];
  char why[600];                  // all reasons for refusals
  enum cs_wire_engine_kind used;  // the one that most threads have, or had while there was one
  uint64_t cpu_ns;                // of threads that are no longer sampled
  uint32_t others;                // threads that have another engine than the best one
  uint32_t without;               // threads that have none
  bool changed;                   // since it was last reported
} state;

// ---- The order ----

// Only perf counts anything but time, and it sees the kernel only if it counts in kernel mode.
static bool is_asked_for(const struct cs_engine *engine) {
  if (cs_options.event != 0 && engine->kind != CS_WIRE_ENGINE_PERF) return false;
  if (cs_options.kernel && engine != &cs_engine_perf) return false;
  return cs_options.engine == CS_WIRE_ENGINE_AUTO || cs_options.engine == engine->kind;
}

static void note_why(const struct cs_engine *engine, const struct cs_error *why) {
  size_t used = strlen(state.why);
  state.changed = true;
  if (strstr(state.why, why->text) != NULL) return;
  (void)snprintf(state.why + used, sizeof state.why - used, "%s%s: %s", used > 0 ? "; " : "",
                 cs_wire_engine_name(engine->kind), why->text);
}

static bool is_available(size_t i) {
  struct cs_error why = {""};
  if (state.standing[i] == UNTRIED) {
    bool works = engines[i]->begin == NULL || engines[i]->begin(&why);
    state.standing[i] = works ? WORKS : REFUSED;
    if (!works) note_why(engines[i], &why);
  }
  return state.standing[i] == WORKS;
}

// Returns the engine that most threads are to have, or NULL if none is left.
static const struct cs_engine *best(void) {
  for (size_t i = 0; i < CS_COUNT(engines); i++)
    if (is_asked_for(engines[i]) && is_available(i)) return engines[i];
  return NULL;
}

bool cs_engines_begin(struct cs_error *err) {
  memset(&state, 0, sizeof state);
  if (!cs_wants(CS_WIRE_MODE_CPU)) return true;
  if (best() == NULL) {
    if (state.why[0] == '\0')
      return cs_error_set(err, "the engine %s does not do what is asked for",
                          cs_wire_engine_name(cs_options.engine));
    return cs_error_set(err, "there is no engine for cpu mode: %s", state.why);
  }
  state.changed = true;
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
    if (!is_asked_for(engines[i]) || !is_available(i)) continue;
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
  if (state.without++ == 0) cs_log_important("some threads are not sampled: %s", state.why);
}

// For a thread that has ended, only the time up to its last sample is known.
void cs_engine_stop(struct cs_agent_thread *t) {
  if (t->engine == NULL) return;
  uint64_t now = cs_cpu_ns_of(t->tid);
  t->engine->stop(t);
  t->engine = NULL;
  uint64_t sampled = cs_load_relaxed(&t->thread->cpu_ns);
  if (now == 0) now = t->clock_to > sampled ? t->clock_to : sampled;
  if (now > t->clock_from) state.cpu_ns += now - t->clock_from;
}

void cs_engines_add_cpu(uint64_t ns) {
  state.cpu_ns += ns;
}

// ---- The agent's loop ----

static bool replace(struct cs_agent_thread *t, void *data) {
  if (t->engine != data) return true;
  cs_engine_stop(t);
  cs_engine_start(t);
  return true;
}

static void abandon(const struct cs_engine *engine, const struct cs_error *why) {
  for (size_t i = 0; i < CS_COUNT(engines); i++)
    if (engines[i]->kind == engine->kind) state.standing[i] = REFUSED;
  note_why(engine, why);
  cs_log("the engine %s is given up: %s", cs_wire_engine_name(engine->kind), why->text);
  cs_threads_visit(replace, (void *)(uintptr_t)engine);
  if (engine->end != NULL) engine->end();
}

uint64_t cs_engines_poll(uint64_t now_ns) {
  uint64_t next = UINT64_MAX;
  struct cs_error why;
  if (!cs_wants(CS_WIRE_MODE_CPU)) return next;
  for (size_t i = 0; i < CS_COUNT(engines); i++) {
    uint64_t at = UINT64_MAX;
    if (state.standing[i] != WORKS || engines[i]->poll == NULL) continue;
    if (!engines[i]->poll(engines[i], now_ns, &at, &why)) abandon(engines[i], &why);
    if (at < next) next = at;
  }
  if (state.changed) (void)cs_engines_report();
  return next;
}

bool cs_engines_have_events(void) {
  bool have = false;
  for (size_t i = 0; i < CS_COUNT(engines); i++)
    have = have || (engines[i] != &cs_engine_clock && state.standing[i] == WORKS);
  return have;
}

static bool change_period(struct cs_agent_thread *t, void *data) {
  (void)data;
  if (t->engine != NULL && t->engine->change != NULL) t->engine->change(t);
  return true;
}

void cs_engines_set_period(uint64_t period_ns) {
  cs_store_release(&cs_agent.period_ns, period_ns);
  cs_threads_visit(change_period, NULL);
}

bool cs_engines_report(void) {
  if (!cs_wants(CS_WIRE_MODE_CPU)) return true;
  const struct cs_engine *engine = best();
  if (engine != NULL) state.used = engine->kind;
  struct cs_wire_engine record = {
      .cpu_ns = state.cpu_ns,
      .requested = (uint32_t)cs_options.engine,
      .used = (uint32_t)state.used,
      .others = state.others,
      .without = state.without,
  };
  const char *unseen = engine != NULL && engine->unseen != NULL ? engine->unseen() : "";
  const char *strings[] = {state.why, unseen};
  state.changed = false;
  return cs_producer_put(&cs_agent.wire, CS_WIRE_ENGINE, &record, sizeof record, strings, 2);
}
