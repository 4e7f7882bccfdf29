// SPDX-License-Identifier: MIT
// CPU mode: a timer on each thread's own CPU clock, which sends the signal to that very thread.
// What sleeps costs nothing and is not woken.
//
// Invariant: a timer exists only while its thread's entry is in the list of threads (threads.c,
// under its lock). Any thread may make one: a thread's clock is named by its tid. Signal-safe: no.
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent/agent.h"
#include "base/log.h"

// A thread's CPU clock as the kernel numbers it (clock_getcpuclockid has it for processes only).
static clockid_t cpu_clock_of(uint32_t tid) {
  return (clockid_t)(~tid << 3 | 6u);  // CPUCLOCK_PERTHREAD_MASK 4 | CPUCLOCK_SCHED 2
}

static struct timespec to_timespec(uint64_t ns) {
  return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

// The first expiry at a random part of the period: else threads that live for less than a period
// would never be seen, and all others a little too often.
static uint64_t first_ns(void) {
  uint64_t x = cs_tsc() * 0x9E3779B97F4A7C15ull;
  return 1 + (x >> 32) % cs_agent.period_ns;
}

bool cs_cpu_timer_start(struct cs_agent_thread *t) {
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = cs_core.signal_number;
  event.sigev_value.sival_ptr = t->thread;
  event._sigev_un._tid = (pid_t)t->tid;
  if (timer_create(cpu_clock_of(t->tid), &event, &t->timer) != 0) {
    if (errno != EINVAL && errno != ESRCH)  // those: it has ended meanwhile
      cs_log_important("some threads are not sampled: no timer for them: %s%s", strerror(errno),
                       errno == EAGAIN ? " (raise ulimit -i)" : "");
    return false;
  }
  struct itimerspec when = {to_timespec(cs_agent.period_ns), to_timespec(first_ns())};
  if (timer_settime(t->timer, 0, &when, NULL) != 0) {
    cs_log_important("some threads are not sampled: their timer cannot be set: %s",
                     strerror(errno));
    (void)timer_delete(t->timer);
    return false;
  }
  t->has_timer = true;
  return true;
}

void cs_cpu_timer_stop(struct cs_agent_thread *t) {
  if (t->has_timer) (void)timer_delete(t->timer);
  t->has_timer = false;
}
