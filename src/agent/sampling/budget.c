// SPDX-License-Identifier: MIT
// The budget: how much of a processor recording may use. Counted are the agent's thread and the
// command by their CPU clocks, and what handlers hold the program's threads; not counted is what
// the kernel itself spends on signals and on reading clocks.
//
// A part of the cost does not depend on the rate, and a first look at a library costs once what
// later ones do not. So cost and rate are both averaged over the last seconds, and the next rate is
// the average one times what is allowed over what was used: that settles where the two are equal,
// whatever the fixed part, and a single burst does not swing it. Where even the lowest rate costs
// more than is allowed, the summary says so.
//
// Of several modes each may have the same share; what one does not need is the others'. Samples in
// time are one party, with all that is no sample's cost; each mode of events is another, and is
// told what part of a processor its walks may take (gate.c). The agent's thread only. Signal-safe:
// no.
#include "base/clock.h"
#include "base/log.h"
#include "sampling/agent.h"

#define SECOND 1000000000ull

enum {
  TURN_MS = 500,
  LEAST_HZ = 1,
  FEW_HZ = 20,
  MOST_HELD_NS = 200000,  // that a sample can take, its stack and caches being cold
  // Per turn, of a hundred: what is forgotten, what of the budget is aimed at, and below what
  // change the rate is left alone.
  FADE = 10,
  AIM = 90,
  NARROW = 10,
};

static struct {
  uint64_t begin_ns, turn_ns;     // when the recording and the last turn began
  uint64_t agent_ns, command_ns;  // clocks at the last turn
  uint64_t agent_begin, command_begin;
  uint64_t held_ns, held_at_turn;  // of all handlers
  double cost, time, hz;           // faded sums: ns used, ns passed, hz * ns
  double command, samples;         // and of the command's ns, and samples
  uint64_t samples_at;
  double shares[CS_SAMPLE_MODES];  // parts of a processor; [0] is that of samples in time
  uint32_t hz_now, hz_least, changes;
} budget;

static uint64_t thread_cpu_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static uint64_t command_cpu_ns(void) {
  return cs_load_acquire(&cs_agent.wire.header->command_cpu_ns);
}

void cs_budget_start(uint64_t now_ns) {
  budget.begin_ns = budget.turn_ns = now_ns;
  budget.agent_ns = budget.agent_begin = thread_cpu_ns();
  budget.command_ns = budget.command_begin = command_cpu_ns();
  budget.held_ns = budget.held_at_turn = 0;
  budget.cost = budget.time = budget.hz = budget.command = budget.samples = 0;
  budget.samples_at = cs_load_relaxed(&cs_agent.ring.samples);
  for (int i = 0; i < CS_SAMPLE_MODES; i++) budget.shares[i] = cs_agent.budget_ppm / 1e6;
  budget.hz_now = budget.hz_least = cs_agent.hz;
  budget.changes = 0;
}

// A thread that was put aside meanwhile used no processor then.
void cs_budget_add_held(uint64_t ticks) {
  uint64_t ns = cs_clock_ticks_to_ns(ticks);
  budget.held_ns += ns < MOST_HELD_NS ? ns : MOST_HELD_NS;
}

static void add_turn(uint64_t now_ns) {
  double keep = (100 - FADE) / 100.0;
  uint64_t agent = thread_cpu_ns(), command = command_cpu_ns();
  double passed = (double)(now_ns - budget.turn_ns);
  double used = (double)(agent - budget.agent_ns) + (double)(command - budget.command_ns) +
                (double)(budget.held_ns - budget.held_at_turn);
  budget.cost = budget.cost * keep + used;
  budget.time = budget.time * keep + passed;
  budget.hz = budget.hz * keep + budget.hz_now * passed;
  uint64_t samples = cs_load_relaxed(&cs_agent.ring.samples);
  budget.command = budget.command * keep + (double)(command - budget.command_ns);
  budget.samples = budget.samples * keep + (double)(samples - budget.samples_at);
  budget.samples_at = samples;
  cs_gate_set_beside(budget.samples >= 1 ? budget.command / budget.samples : 0);
  budget.turn_ns = now_ns;
  budget.agent_ns = agent;
  budget.command_ns = command;
  budget.held_at_turn = budget.held_ns;
}

// What part of a processor samples in time take, with all that is no sample's.
static double used_in_time(void) {
  double used = budget.cost / budget.time;
  for (int mode = 1; mode < CS_SAMPLE_MODES; mode++) used -= cs_gate_used((enum cs_wire_mode)mode);
  return used > 0 ? used : 0;
}

// The smallest demand first: what it leaves of its share is divided among the others.
static void share_out(void) {
  double demand[CS_SAMPLE_MODES], left = cs_agent.budget_ppm * (AIM / 100.0) / 1e6;
  bool given[CS_SAMPLE_MODES] = {false};
  int parties = 0;
  demand[0] = used_in_time() * cs_agent.hz / (budget.hz / budget.time);
  for (int i = 0; i < CS_SAMPLE_MODES; i++) {
    if (i > 0) demand[i] = cs_gate_demand((enum cs_wire_mode)i);
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
}

static uint32_t wanted_hz(void) {
  double used = used_in_time();
  double hz = used > 0 ? budget.hz / budget.time * budget.shares[0] / used : cs_agent.hz;
  if (hz > 2.0 * budget.hz_now) hz = 2.0 * budget.hz_now;
  if (hz < LEAST_HZ) hz = LEAST_HZ;
  return hz < cs_agent.hz ? (uint32_t)hz : cs_agent.hz;
}

double cs_budget_share(enum cs_wire_mode mode) {
  return cs_agent.budget_ppm != 0 ? budget.shares[mode] : -1;
}

// Few samples a second at even times are in step with whatever the program does once a second, and
// then each of them sees the same of it. So their time is somewhat longer, by the golden section's
// tenth: it has no multiple that is near a whole one.
static uint64_t period_of(uint32_t hz) {
  uint64_t even = SECOND / hz;
  return hz > FEW_HZ ? even : even + even * 618034 / 10000000;
}

void cs_budget_turn(uint64_t now_ns) {
  if (cs_agent.budget_ppm == 0 || now_ns - budget.turn_ns < TURN_MS * 1000000ull) return;
  add_turn(now_ns);
  share_out();
  uint32_t hz = wanted_hz(), now = budget.hz_now;
  uint32_t change = hz > now ? hz - now : now - hz;
  bool at_end = hz == cs_agent.hz || hz == LEAST_HZ;
  if (change == 0 || (!at_end && change * 100 < now * NARROW)) return;
  cs_log("budget: %.3f %% of a processor at %u Hz; %u Hz from now on",
         100 * budget.cost / budget.time, now, hz);
  budget.hz_now = hz;
  if (hz < budget.hz_least) budget.hz_least = hz;
  budget.changes++;
  cs_threads_set_period(period_of(hz));
}

bool cs_budget_tell(uint64_t now_ns) {
  struct cs_wire_budget told = {
      .recorded_ns = now_ns - budget.begin_ns,
      .agent_ns = thread_cpu_ns() - budget.agent_begin,
      .handlers_ns = budget.held_ns,
      .command_ns = command_cpu_ns() - budget.command_begin,
      .budget_ppm = cs_agent.budget_ppm,
      .hz_least = budget.hz_least,
      .hz_last = budget.hz_now,
      .changes = budget.changes,
  };
  if (cs_agent.budget_ppm == 0) return true;
  return cs_producer_put(&cs_agent.wire, CS_WIRE_BUDGET, &told, sizeof told, NULL, 0);
}
