// SPDX-License-Identifier: MIT
// What the perf engine costs a program besides its samples: the kernel starts and cancels the timer
// of a thread's event each time the thread gets and loses a processor. That is half a microsecond
// on some machines and several in a virtual one, and a server's threads switch tens of thousands of
// times a second. Measured once on the calling thread, then multiplied by the program's own
// switches. Threads: the agent's. Signal-safe: no.
#include "engines/perf_cost.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/perf.h"

enum {
  MOMENTS = 7,
  PAIRS = 7,         // in each of them
  SOON_NS = 50000,   // earlier than nearly all other timers, and later than a pair takes
  MOST_PPM = 20000,  // of its CPU time that the program may lose
  ENOUGH_MS = 20,    // CPU time that says something about a program
  PAST_MS = 1000,    // the same since its start, whose many switches say nothing about later
  PRESENT_MS = 100,  // how long its present is, if its past says that it switches often
};

static int by_length(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t median(uint64_t *values, size_t count) {
  qsort(values, count, sizeof values[0], by_length);
  return values[count / 2];
}

// Returns how long it takes to enable and disable an event of the calling thread, or 0 if there is
// no such event.
static uint64_t pair_ns(uint32_t kind, uint64_t period) {
  struct perf_event_attr attr;
  uint64_t took[PAIRS];
  cs_perf_attr(&attr, kind, period, true);
  int fd = cs_perf_open(&attr, 0);
  if (fd < 0) return 0;
  for (int i = 0; i < PAIRS; i++) {
    uint64_t began = cs_clock_now_ns();
    (void)ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    (void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
    took[i] = cs_clock_now_ns() - began;
  }
  (void)close(fd);
  return median(took, PAIRS);
}

// If the processor's timer is already programmed for something earlier, such as the tick, the
// kernel leaves it alone, so one moment says too little. A sample's period is about as long as the
// tick's, so this happens about every other time in the program. The cost of an event without a
// timer, which is subtracted, is that of the fastest moment, because other programs can only
// increase it.
uint64_t cs_perf_switch_ns(void) {
  const struct timespec nap = {0, 1000000};
  uint32_t without = cs_perf_kind_by_name("page-faults", strlen("page-faults"));
  uint64_t timer[MOMENTS], none = UINT64_MAX;
  for (int i = 0; i < MOMENTS; i++) {
    timer[i] = pair_ns(0, SOON_NS);
    uint64_t ns = pair_ns(without, UINT32_MAX);
    if (ns < none) none = ns;
    (void)nanosleep(&nap, NULL);
  }
  uint64_t with = median(timer, MOMENTS);
  return with > none ? (with - none) / 2 : 0;
}

static uint64_t to_ns(struct timeval t) {
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000;
}

static struct cs_perf_use use_of(int whom) {
  struct rusage usage;
  if (getrusage(whom, &usage) != 0) return (struct cs_perf_use){0, 0};
  return (struct cs_perf_use){(uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw),
                              to_ns(usage.ru_utime) + to_ns(usage.ru_stime)};
}

// The agent's thread, which scans the others many times a second, has no event. The two are not
// read at one moment, so the difference may fall by a switch.
struct cs_perf_use cs_perf_use_now(void) {
  struct cs_perf_use agent = use_of(RUSAGE_THREAD), all = use_of(RUSAGE_SELF);
  return (struct cs_perf_use){all.switches - agent.switches, all.cpu_ns - agent.cpu_ns};
}

static uint64_t since(uint64_t from, uint64_t to) {
  return to > from ? to - from : 0;
}

bool cs_perf_costs_too_much(uint64_t switch_ns, struct cs_perf_use from, struct cs_perf_use to,
                            struct cs_error *why) {
  uint64_t switches = since(from.switches, to.switches), cpu_ns = since(from.cpu_ns, to.cpu_ns);
  if (cpu_ns < ENOUGH_MS * 1000000ull) return false;
  uint64_t ppm = (uint64_t)((double)(switches * switch_ns) / (double)cpu_ns * 1e6);
  if (ppm <= MOST_PPM) return false;
  char part[32] = "more than all";
  uint64_t percent = (ppm + 5000) / 10000;
  if (percent <= 100) (void)snprintf(part, sizeof part, "some %lu %%", (unsigned long)percent);
  (void)cs_error_set(why,
                     "its events would cost the program %s of its CPU time, %lu.%lu us each time a "
                     "thread loses its processor; --engine perf takes it all the same",
                     part, (unsigned long)(switch_ns / 1000),
                     (unsigned long)(switch_ns % 1000 / 100));
  return true;
}

static struct {
  uint64_t switch_ns;
  struct cs_perf_use last;
  unsigned in_a_row;
} state;

// A program that has switched often so far need not do so now: it is watched for a moment.
bool cs_perf_cost_begin(struct cs_error *why) {
  const struct timespec present = {0, PRESENT_MS * 1000000};
  state = (typeof(state)){.switch_ns = cs_perf_switch_ns()};
  cs_log("engine perf: %lu ns for each switch of a thread", (unsigned long)state.switch_ns);
  struct cs_perf_use past = state.last = cs_perf_use_now();
  if (past.cpu_ns < PAST_MS * 1000000ull ||
      !cs_perf_costs_too_much(state.switch_ns, (struct cs_perf_use){0, 0}, past, why))
    return true;
  (void)nanosleep(&present, NULL);
  state.last = cs_perf_use_now();
  return !cs_perf_costs_too_much(state.switch_ns, past, state.last, why);
}

bool cs_perf_cost_check(struct cs_error *why) {
  enum { PATIENCE = 2 };
  struct cs_perf_use now = cs_perf_use_now();
  bool much = cs_perf_costs_too_much(state.switch_ns, state.last, now, why);
  state.last = now;
  state.in_a_row = much ? state.in_a_row + 1 : 0;
  return state.in_a_row < PATIENCE;
}
