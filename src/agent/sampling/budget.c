// SPDX-License-Identifier: MIT
// The budget: how much of a processor a recording may use. It includes the CPU time of the agent's
// threads and of the command, and the time for which handlers hold the program's threads, but not
// what the kernel itself spends on signals and on reading clocks.
//
// Part of the cost does not depend on the rate, and the first use of a library has a cost that
// later ones do not have. So cost and rate are both averaged over the last seconds, and the next
// rate is the average rate times the allowed cost divided by the average cost: that settles where
// the two costs are equal, whatever the fixed part is, and a single burst does not make it swing.
// Where even the lowest rate costs more than is allowed, the summary says so.
//
// All modes have equal shares, and what one does not need goes to the others. Timed samples are one
// party, which includes all costs that belong to no sample; each mode of events is another, whose
// share is the part of a processor that its walks may take (throttle.h). The agent's thread only.
// Signal-safe: no.
#include "sampling/budget.h"

#include "base/clock.h"
#include "base/log.h"
#include "engines/engines.h"
#include "state/throttle.h"

#define SECOND 1000000000ull

enum {
  UPDATE_MS = 500,
  LEAST_HZ = 1,
  FEW_HZ = 20,
  MOST_HELD_NS = 200000,  // the longest that a sample can take, with cold stack and caches
  // Percentages, per update: how much past sums fade, how much of the budget to aim for, and the
  // least change of the rate.
  FADE = 10,
  AIM = 90,
  NARROW = 10,
};

static struct {
  uint64_t begin_ns, updated_ns;  // when the recording began, and the last update was
  uint64_t agent_begin, command_begin;
  // At the last update: the CPU clocks, and the counters.
  uint64_t agent_at, command_at, held_at, samples_at;
  uint64_t held_ns;                // in all handlers
  double cost, time, hz;           // faded sums: ns used, ns passed, hz * ns
  double command, samples;         // the same of the command's ns, and of samples
  double shares[CS_SAMPLE_MODES];  // parts of a processor, by mode; [0]: timed samples
  uint32_t hz_now, hz_least, changes;
} budget;

// Returns the CPU time of both threads of the agent; the watching thread begins later.
static uint64_t agent_cpu_ns(void) {
  uint32_t watcher = cs_load_acquire(&cs_agent.watcher_tid);
  return cs_thread_cpu_ns() + (watcher != 0 ? cs_cpu_ns_of(watcher) : cs_agent.watcher_ns);
}

static uint64_t command_cpu_ns(void) {
  return cs_load_acquire(&cs_agent.wire.header->command_cpu_ns);
}

static void publish_shares(void) {
  for (int mode = 1; mode < CS_SAMPLE_MODES; mode++)
    cs_throttle_set_share((enum cs_wire_mode)mode, budget.shares[mode]);
}

void cs_budget_start(uint64_t now_ns) {
  budget = (typeof(budget)){.begin_ns = now_ns, .updated_ns = now_ns};
  budget.agent_at = budget.agent_begin = cs_thread_cpu_ns();
  budget.command_at = budget.command_begin = command_cpu_ns();
  budget.samples_at = cs_load_relaxed(&cs_agent.ring.samples);
  budget.hz_now = budget.hz_least = cs_options.hz;
  if (cs_options.budget_ppm == 0) return;
  for (int i = 0; i < CS_SAMPLE_MODES; i++) budget.shares[i] = cs_options.budget_ppm / 1e6;
  publish_shares();
}

// Bounded, since a thread that was preempted meanwhile used no processor.
void cs_budget_add_held(uint64_t ticks) {
  uint64_t ns = cs_clock_ticks_to_ns(ticks);
  budget.held_ns += ns < MOST_HELD_NS ? ns : MOST_HELD_NS;
}

static void add_up(uint64_t now_ns) {
  double keep = (100 - FADE) / 100.0;
  uint64_t agent = agent_cpu_ns(), command = command_cpu_ns();
  uint64_t samples = cs_load_relaxed(&cs_agent.ring.samples);
  double passed = (double)(now_ns - budget.updated_ns);
  double by_command = (double)(command - budget.command_at);
  double used =
      (double)(agent - budget.agent_at) + by_command + (double)(budget.held_ns - budget.held_at);
  budget.cost = budget.cost * keep + used;
  budget.time = budget.time * keep + passed;
  budget.hz = budget.hz * keep + budget.hz_now * passed;
  budget.command = budget.command * keep + by_command;
  budget.samples = budget.samples * keep + (double)(samples - budget.samples_at);
  cs_throttle_set_command_cost(budget.samples >= 1 ? budget.command / budget.samples : 0);
  budget.updated_ns = now_ns;
  budget.agent_at = agent;
  budget.command_at = command;
  budget.held_at = budget.held_ns;
  budget.samples_at = samples;
}

// Returns the part of a processor that timed samples take, with the costs that belong to no sample.
static double used_in_time(void) {
  double used = budget.cost / budget.time;
  for (int mode = 1; mode < CS_SAMPLE_MODES; mode++)
    used -= cs_throttle_used((enum cs_wire_mode)mode);
  return used > 0 ? used : 0;
}

// The smallest demand comes first: what it leaves of its share is divided among the others.
static void share_out(void) {
  double demand[CS_SAMPLE_MODES], left = cs_options.budget_ppm * (AIM / 100.0) / 1e6;
  bool given[CS_SAMPLE_MODES] = {false};
  int parties = 0;
  demand[0] = used_in_time() * cs_options.hz / (budget.hz / budget.time);
  for (int i = 0; i < CS_SAMPLE_MODES; i++) {
    if (i > 0) demand[i] = cs_throttle_demand((enum cs_wire_mode)i);
    if (demand[i] > 0) parties++;
  }
  for (; parties > 0; parties--) {
    int least = -1;
    for (int i = 0; i < CS_SAMPLE_MODES; i++)
      if (!given[i] && demand[i] > 0 && (least < 0 || demand[i] < demand[least])) least = i;
    double even = left / parties;
    given[least] = true;
    left -= demand[least] < even ? demand[least] : even;
    budget.shares[least] = even;
  }
  publish_shares();
}

static uint32_t wanted_hz(void) {
  double used = used_in_time();
  double hz = used > 0 ? budget.hz / budget.time * budget.shares[0] / used : cs_options.hz;
  if (hz > 2.0 * budget.hz_now) hz = 2.0 * budget.hz_now;
  if (hz < LEAST_HZ) hz = LEAST_HZ;
  return hz < cs_options.hz ? (uint32_t)hz : cs_options.hz;
}

// A few samples a second at regular times would be in step with whatever the program does once a
// second, and would all show the same part of it. So the period is longer by a tenth of the golden
// ratio, which has no multiple near a whole number.
static uint64_t period_of(uint32_t hz) {
  uint64_t even = SECOND / hz;
  return hz > FEW_HZ ? even : even + even * 618034 / 10000000;
}

void cs_budget_update(uint64_t now_ns) {
  if (cs_options.budget_ppm == 0 || now_ns - budget.updated_ns < UPDATE_MS * 1000000ull) return;
  add_up(now_ns);
  share_out();
  uint32_t hz = wanted_hz(), now = budget.hz_now;
  uint32_t change = hz > now ? hz - now : now - hz;
  bool at_limit = hz == cs_options.hz || hz == LEAST_HZ;
  if (change == 0 || (!at_limit && change * 100 < now * NARROW)) return;
  cs_log("budget: %.3f %% of a processor at %u Hz; %u Hz from now on",
         100 * budget.cost / budget.time, now, hz);
  budget.hz_now = hz;
  if (hz < budget.hz_least) budget.hz_least = hz;
  budget.changes++;
  cs_engines_set_period(period_of(hz));
}

bool cs_budget_report(uint64_t now_ns) {
  struct cs_wire_budget record = {
      .recorded_ns = now_ns - budget.begin_ns,
      .agent_ns = agent_cpu_ns() - budget.agent_begin,
      .handlers_ns = budget.held_ns,
      .command_ns = command_cpu_ns() - budget.command_begin,
      .budget_ppm = cs_options.budget_ppm,
      .hz_least = budget.hz_least,
      .hz_last = budget.hz_now,
      .changes = budget.changes,
  };
  return cs_options.budget_ppm == 0 || cs_send(CS_WIRE_BUDGET, &record, sizeof record);
}
