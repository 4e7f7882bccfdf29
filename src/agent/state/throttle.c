// SPDX-License-Identifier: MIT
// All events are counted. Where there are too many to walk them all, some are chosen at random, and
// each of these stands for others: waits and objects by their time and bytes, all of at least
// `threshold`, and lesser ones with a probability proportional to their value, so that each of
// these stands for equally much, apart from what makes sums right (sums.c); all other events by
// `chance`. Both are set before an event comes, and do not depend on its stack, so sums are
// unbiased.
//
// How many may be walked: as many as the user says, else as many as cost 0.5 % of the program's CPU
// time in each mode, less what counting exceptions costs, and at most some hundreds of exceptions
// and waits a second; and no more than the budget leaves (budget.c). The agent's thread decides by
// the events of the last second.
//
// Threads: any may count events; updates are the agent's. Signal-safe: no.
#include "state/throttle.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/random.h"
#include "state/event_names.h"

#define SECOND 1000000000ull
#define ALWAYS (1ull << 32)

enum {
  UPDATE_MS = 100,
  FADE = 10,               // the percentage of past sums that an update forgets
  SHARE_OF_CPU = 200,      // 1 / the part of the program's CPU time
  FEWEST = 100,            // walks a second, however little CPU time the program uses,
  FEWEST_HOLDERS = 25,     // of holders, which cost more: they are mostly walked by the agent's
                           // thread
  MOST_NS = 50000,         // a walk that took longer was preempted, and says nothing of its cost
  MOST = 500,              // walks of exceptions and waits a second
  COUNTING_NS = 400,       // for each exception: the runtime's event, its type's name and message
  BATCH = 16,              // exceptions that are counted at once
  MOST_RISE = 8,           // the factor by which an update may raise a threshold
  LEAST_THRESHOLD = 1000,  // ns, of waits
  MEAN_INTERVAL = 102400,  // bytes; the runtime's own
};

static struct throttle {
  // Atomic.
  uint64_t events, value, walked;
  uint64_t cost_ns;    // of the walks: on their threads, and on the agent's
  uint64_t chance;     // of ALWAYS
  uint64_t threshold;  // in the mode's unit
  uint64_t many;       // events: from here on there are too many for `chance` until the next update
  struct cs_sum sum;   // of the events below the threshold, but for objects, which have types
  // The agent's thread only: the first four at the last update, and their faded sums.
  uint64_t events_at, walked_at, value_at, cost_at;
  double events_sum, walked_sum, value_sum, cost_sum;
  double share;  // of a processor, by the budget; negative: there is none
} throttles[CS_SAMPLE_MODES];
static uint64_t updated_ns, cpu_at;
static double time_sum, cpu_sum;
static double command_ns;  // what a sample costs in the command

static bool is_event(unsigned mode) {
  return (cs_options.modes & ~CS_WIRE_TIMED_MODES & CS_WIRE_MODE_BIT(mode)) != 0;
}

// Returns `wanted`, or 0 if all are walked. One of so many bytes, if that is what the user wants.
static uint64_t threshold_for(unsigned mode, double wanted) {
  uint64_t interval = mode == CS_WIRE_MODE_ALLOC ? cs_options.alloc_interval : 0;
  uint64_t least = mode == CS_WIRE_MODE_ALLOC ? MEAN_INTERVAL + 1 : LEAST_THRESHOLD;
  if (wanted < (double)interval) wanted = (double)interval;
  return wanted < (double)least ? 0 : (uint64_t)wanted;
}

void cs_throttle_start(uint64_t now_ns) {
  for (unsigned i = 0; i < CS_SAMPLE_MODES; i++)
    throttles[i] = (struct throttle){.chance = ALWAYS, .many = MOST, .share = -1};
  throttles[CS_WIRE_MODE_ALLOC].threshold = threshold_for(CS_WIRE_MODE_ALLOC, 0);
  updated_ns = now_ns;
  cpu_at = cs_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
  time_sum = cpu_sum = command_ns = 0;
}

// ---- Any thread ----

static uint32_t random_word(void) {
  static __thread uint64_t state;
  if (state == 0) state = cs_tsc() ^ cs_hash_word((uint64_t)(uintptr_t)&state, 64);
  return (uint32_t)(cs_random_next(&state) >> 32);
}

uint64_t cs_throttle_draw(enum cs_wire_mode mode) {
  uint64_t chance = cs_load_relaxed(&throttles[mode].chance);
  if (chance >= ALWAYS) return ALWAYS;
  return random_word() < chance ? (uint64_t)((double)ALWAYS * (double)ALWAYS / (double)chance) : 0;
}

void cs_throttle_count(enum cs_wire_mode mode, uint64_t value) {
  cs_add_relaxed(&throttles[mode].events, 1);
  cs_add_relaxed(&throttles[mode].value, value);
}

bool cs_throttle_take(enum cs_wire_mode mode, uint64_t value, struct cs_sum *sum,
                      uint64_t *weight) {
  struct throttle *t = &throttles[mode];
  cs_throttle_count(mode, value);
  uint64_t threshold = cs_load_relaxed(&t->threshold), chance = cs_load_relaxed(&t->chance);
  *weight = value;
  if (value < threshold) {
    if (sum == NULL) sum = &t->sum;
    cs_sum_add(sum, value);
    if ((double)random_word() * (double)threshold >= (double)value * (double)ALWAYS) return false;
    *weight = cs_sum_weigh(sum, value, threshold);
    return true;
  }
  if (chance >= ALWAYS) return true;
  *weight = (uint64_t)((double)value * (double)ALWAYS / (double)chance + 0.5);
  return random_word() < chance;
}

// Where few events are walked, one in BATCH, chosen at random, counts for all: that is exact enough
// for the rate, and threads that throw at the same time do not contend for the counter.
bool cs_throttle_take_one(enum cs_wire_mode mode, double least) {
  struct throttle *t = &throttles[mode];
  uint64_t now = cs_load_relaxed(&t->chance);
  if (now > ALWAYS / BATCH && cs_load_relaxed(&t->events) >= cs_load_relaxed(&t->many) &&
      cs_options.event_rate == 0)
    now = ALWAYS / BATCH;
  uint32_t random = random_word();
  bool batch = now < ALWAYS / BATCH;
  if (!batch || random % BATCH == 0) cs_add_relaxed(&t->events, batch ? BATCH : 1u);
  double chance = (double)now / (double)ALWAYS;
  if (chance < least) chance = least;
  return chance >= 1 || (double)random < chance * (double)ALWAYS;
}

void cs_throttle_add_cost(enum cs_wire_mode mode, uint64_t ticks) {
  uint64_t ns = cs_clock_ticks_to_ns(ticks);
  cs_add_relaxed(&throttles[mode].cost_ns, ns < MOST_NS ? ns : MOST_NS);
}

void cs_throttle_add_walk(enum cs_wire_mode mode) {
  cs_add_relaxed(&throttles[mode].walked, 1);
}

// ---- The agent's thread ----

static void fade(double *sum, uint64_t *at, uint64_t now) {
  *sum = *sum * (100 - FADE) / 100 + (double)(now - *at);
  *at = now;
}

static double cost_of_one(const struct throttle *t) {
  return t->walked_sum >= 1 ? t->cost_sum / t->walked_sum + command_ns : 0;
}

// Returns how many events may be walked a second, without regard to the budget.
static double allowed(unsigned mode, const struct throttle *t) {
  const double no_limit = 1e9;
  double one = cost_of_one(t), most = mode == CS_WIRE_MODE_ALLOC ? no_limit : MOST;
  if (mode == CS_WIRE_MODE_GC) return no_limit;
  if (mode == CS_WIRE_MODE_ALLOC && cs_options.alloc_interval != 0) return no_limit;
  if (mode != CS_WIRE_MODE_ALLOC && cs_options.event_rate != 0) return cs_options.event_rate;
  double share_ns = cpu_sum / time_sum * (double)SECOND / SHARE_OF_CPU;  // in a second
  if (mode == CS_WIRE_MODE_EXCEPTION)
    share_ns -= t->events_sum / time_sum * (double)SECOND * COUNTING_NS;
  double by_cost = one > 0 ? share_ns / one : no_limit;
  double fewest = mode == CS_WIRE_MODE_HOLDERS ? FEWEST_HOLDERS : FEWEST;
  if (by_cost < fewest) by_cost = fewest;
  return by_cost < most ? by_cost : most;
}

static void settle_chance(struct throttle *t, double per_s, double most) {
  cs_store_relaxed(&t->chance, per_s > most ? (uint64_t)(most / per_s * (double)ALWAYS) : ALWAYS);
}

// With this threshold at most `most` are walked: fewer if some objects are larger than that.
static void settle_bytes(struct throttle *t, double seconds, double most) {
  double wanted = t->events_sum > most * seconds ? t->value_sum / seconds / most : 0;
  cs_store_relaxed(&t->threshold, threshold_for(CS_WIRE_MODE_ALLOC, wanted));
}

// Raised by the events since the last update, because a threshold that is too low costs; lowered by
// those of the last second. Waits that are longer than the threshold are walked, however many.
static void settle_threshold(unsigned mode, double lately_per_s, double per_s, double most) {
  struct throttle *t = &throttles[mode];
  double now = (double)t->threshold, times = lately_per_s / most;
  if (times > 1 && now == 0) now = t->value_sum / t->events_sum;
  if (times > 1)
    now *= times < MOST_RISE ? times : MOST_RISE;
  else if (per_s < 0.8 * most)
    now *= 0.8;
  cs_store_relaxed(&t->threshold, threshold_for(mode, now));
}

static void settle(unsigned mode, double lately_per_s) {
  struct throttle *t = &throttles[mode];
  double one = cost_of_one(t), seconds = time_sum / (double)SECOND, most = allowed(mode, t);
  if (t->share >= 0 && one > 0 && most > t->share * (double)SECOND / one)
    most = t->share * (double)SECOND / one;
  if (most < 1) most = 1;
  if (mode == CS_WIRE_MODE_ALLOC)
    settle_bytes(t, seconds, most);
  else if (mode == CS_WIRE_MODE_LOCK || mode == CS_WIRE_MODE_WAIT)
    settle_threshold(mode, lately_per_s, t->walked_sum / seconds, most);
  else
    settle_chance(t, t->events_sum / seconds, most);
}

double cs_throttle_demand(enum cs_wire_mode mode) {
  const struct throttle *t = &throttles[mode];
  if (!is_event(mode) || time_sum <= 0) return 0;
  double most = allowed(mode, t), events = t->events_sum / time_sum * (double)SECOND;
  return cost_of_one(t) * (events < most ? events : most) / (double)SECOND;
}

double cs_throttle_used(enum cs_wire_mode mode) {
  const struct throttle *t = &throttles[mode];
  return time_sum > 0 ? cost_of_one(t) * t->walked_sum / time_sum : 0;
}

void cs_throttle_set_share(enum cs_wire_mode mode, double share) {
  throttles[mode].share = share;
}

void cs_throttle_set_command_cost(double ns) {
  command_ns = ns;
}

void cs_throttle_update(uint64_t now_ns) {
  double seconds = (double)(now_ns - updated_ns) / (double)SECOND;
  if (now_ns - updated_ns < UPDATE_MS * 1000000ull) return;
  fade(&time_sum, &updated_ns, now_ns);
  fade(&cpu_sum, &cpu_at, cs_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID));
  for (unsigned mode = 0; mode < CS_SAMPLE_MODES; mode++) {
    struct throttle *t = &throttles[mode];
    if (!is_event(mode)) continue;
    fade(&t->events_sum, &t->events_at, cs_load_relaxed(&t->events));
    fade(&t->value_sum, &t->value_at, cs_load_relaxed(&t->value));
    double lately = (double)(cs_load_relaxed(&t->walked) - t->walked_at) / seconds;
    fade(&t->walked_sum, &t->walked_at, cs_load_relaxed(&t->walked));
    fade(&t->cost_sum, &t->cost_at, cs_load_relaxed(&t->cost_ns));
    settle(mode, lately);
    cs_store_relaxed(&t->many, t->events_at + MOST);
  }
}

bool cs_throttle_report(void) {
  for (unsigned mode = 0; mode < CS_SAMPLE_MODES; mode++) {
    const struct throttle *t = &throttles[mode];
    if (!is_event(mode)) continue;
    struct cs_wire_events record = {mode, 0, t->events, t->value, t->walked};
    if (mode == CS_WIRE_MODE_EXCEPTION) record.events = record.value = cs_event_names_counted();
    cs_log("mode %u: %lu events, %lu walked, %.0f ns each", mode, (unsigned long)record.events,
           (unsigned long)t->walked, cost_of_one(t));
    if (!cs_send(CS_WIRE_EVENTS, &record, sizeof record)) return false;
  }
  return true;
}
