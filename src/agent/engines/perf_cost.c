// SPDX-License-Identifier: MIT
// What the engine perf costs a program beside its samples: the kernel starts and cancels the timer
// of a thread's event each time the thread gets and loses a processor. That is half a microsecond
// on some machines and several in a virtual one, and a server's threads switch ten thousands of
// times a second. Measured once on the calling thread, then multiplied by the program's own
// switches. Threads: the agent's. Signal-safe: no.
#include "engines/perf_cost.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/log.h"
#include "base/perf.h"

enum {
  NAPS = 8,          // in a row, each two switches of the calling thread
  ROUNDS = 6,        // of such rows; the cheapest counts, the others were disturbed
  MOST_PPM = 20000,  // of its CPU time that the program may lose
  ENOUGH_MS = 50,    // CPU time that says something about a program
  PAST_MS = 1000,    // and about what it will do, since its start: that itself switches often
};

static uint64_t naps_ns(void) {
  const struct timespec nap = {0, 1000};
  uint64_t begin = cs_thread_cpu_ns();
  for (int i = 0; i < NAPS; i++) (void)nanosleep(&nap, NULL);
  return (cs_thread_cpu_ns() - begin) / NAPS;
}

// How much longer it takes to lose and get a processor with a task clock of that period than
// without one, by some 6 ms of naps of the calling thread; 0: not more, or there is no task clock.
static uint64_t cost_of_switch(uint64_t period_ns) {
  struct perf_event_attr attr;
  uint64_t without = UINT64_MAX, with = UINT64_MAX;
  cs_perf_attr(&attr, 0, period_ns, true);
  int fd = cs_perf_open(&attr, 0);
  if (fd < 0) return 0;
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t ns = naps_ns();
    if (ns < without) without = ns;
    (void)ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    ns = naps_ns();
    if (ns < with) with = ns;
    (void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
  }
  (void)close(fd);
  return with > without ? with - without : 0;
}

static uint64_t to_ns(struct timeval t) {
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000;
}

static struct cs_perf_use use_of_program(void) {
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return (struct cs_perf_use){0, 0};
  return (struct cs_perf_use){(uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw),
                              to_ns(usage.ru_utime) + to_ns(usage.ru_stime)};
}

bool cs_perf_costs_too_much(uint64_t switch_ns, struct cs_perf_use from, struct cs_perf_use to,
                            struct cs_error *why) {
  uint64_t switches = to.switches - from.switches, cpu_ns = to.cpu_ns - from.cpu_ns;
  if (cpu_ns < ENOUGH_MS * 1000000ull) return false;
  uint64_t ppm = (uint64_t)((double)(switches * switch_ns) / (double)cpu_ns * 1e6);
  if (ppm <= MOST_PPM) return false;
  (void)cs_error_set(why,
                     "its events would cost the program some %lu %% of its CPU time, %lu.%lu us "
                     "each time a thread loses its processor; --engine perf takes it all the same",
                     (unsigned long)((ppm + 5000) / 10000), (unsigned long)(switch_ns / 1000),
                     (unsigned long)(switch_ns % 1000 / 100));
  return true;
}

static struct {
  uint64_t switch_ns;
  struct cs_perf_use last;
  unsigned in_a_row;
} state;

bool cs_perf_cost_begin(uint64_t period_ns, struct cs_error *why) {
  state = (typeof(state)){.switch_ns = cost_of_switch(period_ns)};
  state.last = use_of_program();
  cs_log("engine perf: %lu ns for each switch of a thread", (unsigned long)state.switch_ns);
  return state.last.cpu_ns < PAST_MS * 1000000ull ||
         !cs_perf_costs_too_much(state.switch_ns, (struct cs_perf_use){0, 0}, state.last, why);
}

bool cs_perf_cost_check(struct cs_error *why) {
  enum { PATIENCE = 2 };
  struct cs_perf_use now = use_of_program();
  bool much = cs_perf_costs_too_much(state.switch_ns, state.last, now, why);
  state.last = now;
  state.in_a_row = much ? state.in_a_row + 1 : 0;
  return state.in_a_row < PATIENCE;
}
