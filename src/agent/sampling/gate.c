// SPDX-License-Identifier: MIT
// Which of the runtime's events are walked. All are counted. Where there are more than are to be
// walked, some are chosen at random, and each of those stands for others: a wait by its time, all
// of at least `threshold` and of a shorter one as likely as it is long; any other by `chance`. Both
// are settled before an event comes and do not depend on its stack, so sums are not biased.
//
// How many may be walked: as many as the user says, else what costs 1 % of the program's CPU time
// in each mode, and of exceptions and waits not more than some hundreds a second; and not more than
// what the budget leaves (budget.c). The agent's thread settles that from
// what the last second has brought.
//
// Threads: the runtime's, several at a time; turns are the agent's. Signal-safe: no.
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "sampling/agent.h"

#define SECOND 1000000000ull
#define ALWAYS (1ull << 32)

enum {
  TURN_MS = 100,
  FADE = 10,           // of a hundred, what of the past is forgotten per turn
  SHARE_OF_CPU = 100,  // one part in so many of the program's CPU time
  FEWEST = 100,        // a second, however little the program does
  // A thread that was put aside while it walked says nothing of the walk's cost.
  MOST_NS = 50000,
  MOST = 500,              // exceptions and waits a second
  MOST_RISE = 8,           // of a threshold in a turn
  LEAST_THRESHOLD = 1000,  // ns
  MEAN_INTERVAL = 102400,  // bytes; the runtime's own
};

static struct gate {
  uint64_t events, value, walked;
  uint64_t chance;     // of ALWAYS
  uint64_t threshold;  // ns
  uint64_t cost_ns;    // of those that were walked: on their threads, and on the agent's
  // The agent's thread: all this at the last turn, and faded sums since.
  uint64_t events_at, walked_at, value_at, cost_at;
  double events_sum, walked_sum, value_sum, cost_sum;
} gates[CS_SAMPLE_MODES];
static uint64_t turn_ns, cpu_at;
static double time_sum, cpu_sum;
static double beside_ns;  // what a sample costs elsewhere

static bool is_event(unsigned mode) {
  return (cs_agent.modes & ~CS_WIRE_TIMED_MODES & CS_WIRE_MODE_BIT(mode)) != 0;
}

static bool lasts(unsigned mode) {
  return mode == CS_WIRE_MODE_LOCK || mode == CS_WIRE_MODE_WAIT;
}

static uint64_t chance_of_interval(void) {
  uint64_t interval = cs_agent.alloc_interval;
  return interval <= MEAN_INTERVAL ? ALWAYS : ALWAYS / 1024 * MEAN_INTERVAL / interval * 1024;
}

static uint64_t program_cpu_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

void cs_gate_start(uint64_t now_ns) {
  for (unsigned i = 0; i < CS_SAMPLE_MODES; i++) gates[i] = (struct gate){.chance = ALWAYS};
  gates[CS_WIRE_MODE_ALLOC].chance = chance_of_interval();
  turn_ns = now_ns;
  cpu_at = program_cpu_ns();
  time_sum = cpu_sum = beside_ns = 0;
}

// ---- The runtime's threads ----

static uint32_t random_word(void) {
  static __thread uint64_t state;
  if (state == 0) state = cs_tsc() ^ (uint64_t)(uintptr_t)&state * 0x9E3779B97F4A7C15ull;
  return (uint32_t)(cs_random_next(&state) >> 32);
}

bool cs_gate_take(enum cs_wire_mode mode, uint64_t value, uint64_t *weight) {
  struct gate *g = &gates[mode];
  cs_add_relaxed(&g->events, 1);
  cs_add_relaxed(&g->value, value);
  uint64_t threshold = cs_load_relaxed(&g->threshold), chance = cs_load_relaxed(&g->chance);
  *weight = value;
  if (value < threshold) {
    *weight = threshold;
    return (double)random_word() * (double)threshold < (double)value * (double)ALWAYS;
  }
  if (chance >= ALWAYS) return true;
  *weight = (uint64_t)((double)value * (double)ALWAYS / (double)chance + 0.5);
  return random_word() < chance;
}

void cs_gate_add_cost(enum cs_wire_mode mode, uint64_t ticks) {
  uint64_t ns = cs_clock_ticks_to_ns(ticks);
  cs_add_relaxed(&gates[mode].cost_ns, ns < MOST_NS ? ns : MOST_NS);
}

void cs_gate_add_walk(enum cs_wire_mode mode) {
  cs_add_relaxed(&gates[mode].walked, 1);
}

// ---- The agent's thread ----

static void fade(double *sum, uint64_t *at, uint64_t now) {
  *sum = *sum * (100 - FADE) / 100 + (double)(now - *at);
  *at = now;
}

static double cost_of_one(const struct gate *g) {
  return g->walked_sum >= 1 ? g->cost_sum / g->walked_sum + beside_ns : 0;
}

// How many a second may be walked, by all but the budget.
static double allowed(unsigned mode, const struct gate *g) {
  const double no_limit = 1e9;
  double one = cost_of_one(g), most = mode == CS_WIRE_MODE_ALLOC ? no_limit : MOST;
  if (mode == CS_WIRE_MODE_GC) return no_limit;
  if (mode == CS_WIRE_MODE_ALLOC && cs_agent.alloc_interval != 0) return no_limit;
  if (mode != CS_WIRE_MODE_ALLOC && cs_agent.event_rate != 0) return cs_agent.event_rate;
  double by_cost = one > 0 ? cpu_sum / time_sum * (double)SECOND / SHARE_OF_CPU / one : no_limit;
  if (by_cost < FEWEST) by_cost = FEWEST;
  return by_cost < most ? by_cost : most;
}

static void settle_chance(unsigned mode, struct gate *g, double per_s, double most) {
  uint64_t whole = mode == CS_WIRE_MODE_ALLOC ? chance_of_interval() : ALWAYS;
  double chance = per_s > most ? most / per_s * (double)ALWAYS : (double)ALWAYS;
  cs_store_relaxed(&g->chance, chance < (double)whole ? (uint64_t)chance : whole);
}

// Up by what the last turn has brought, down by the last second: a threshold that is too low costs.
static void settle_threshold(struct gate *g, double lately_per_s, double per_s, double most) {
  double now = (double)g->threshold, times = lately_per_s / most;
  if (times > 1 && now == 0) now = g->value_sum / g->events_sum;
  if (times > 1)
    now *= times < MOST_RISE ? times : MOST_RISE;
  else if (per_s < 0.8 * most)
    now *= 0.8;
  cs_store_relaxed(&g->threshold, now < LEAST_THRESHOLD ? 0 : (uint64_t)now);
}

static void settle(unsigned mode, double lately_per_s, double budget) {
  struct gate *g = &gates[mode];
  double one = cost_of_one(g), seconds = time_sum / (double)SECOND, most = allowed(mode, g);
  if (budget >= 0 && one > 0 && most > budget * (double)SECOND / one)
    most = budget * (double)SECOND / one;
  if (most < 1) most = 1;
  if (lasts(mode))
    settle_threshold(g, lately_per_s, g->walked_sum / seconds, most);
  else
    settle_chance(mode, g, g->events_sum / seconds, most);
}

double cs_gate_demand(enum cs_wire_mode mode) {
  const struct gate *g = &gates[mode];
  if (!is_event(mode) || time_sum <= 0) return 0;
  double most = allowed(mode, g), events = g->events_sum / time_sum * (double)SECOND;
  return cost_of_one(g) * (events < most ? events : most) / (double)SECOND;
}

double cs_gate_used(enum cs_wire_mode mode) {
  const struct gate *g = &gates[mode];
  return time_sum > 0 ? cost_of_one(g) * g->walked_sum / time_sum : 0;
}

void cs_gate_set_beside(double ns) {
  beside_ns = ns;
}

void cs_gate_turn(uint64_t now_ns) {
  double seconds = (double)(now_ns - turn_ns) / (double)SECOND;
  if (now_ns - turn_ns < TURN_MS * 1000000ull) return;
  fade(&time_sum, &turn_ns, now_ns);
  fade(&cpu_sum, &cpu_at, program_cpu_ns());
  for (unsigned mode = 0; mode < CS_SAMPLE_MODES; mode++) {
    struct gate *g = &gates[mode];
    if (!is_event(mode)) continue;
    fade(&g->events_sum, &g->events_at, cs_load_relaxed(&g->events));
    fade(&g->value_sum, &g->value_at, cs_load_relaxed(&g->value));
    double lately = (double)(cs_load_relaxed(&g->walked) - g->walked_at) / seconds;
    fade(&g->walked_sum, &g->walked_at, cs_load_relaxed(&g->walked));
    fade(&g->cost_sum, &g->cost_at, cs_load_relaxed(&g->cost_ns));
    settle(mode, lately, cs_budget_share(mode));
  }
}

bool cs_gate_tell(void) {
  for (unsigned mode = 0; mode < CS_SAMPLE_MODES; mode++) {
    const struct gate *g = &gates[mode];
    if (!is_event(mode)) continue;
    struct cs_wire_events told = {mode, 0, g->events, g->value, g->walked};
    cs_log("mode %u: %lu events, %lu walked, %.0f ns each", mode, (unsigned long)g->events,
           (unsigned long)g->walked, cost_of_one(g));
    if (!cs_producer_put(&cs_agent.wire, CS_WIRE_EVENTS, &told, sizeof told, NULL, 0)) return false;
  }
  return true;
}
