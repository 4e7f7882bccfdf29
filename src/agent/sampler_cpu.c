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
clockid_t cs_cpu_clock_of(uint32_t tid) {
  return (clockid_t)(~tid << 3 | 6u);  // CPUCLOCK_PERTHREAD_MASK 4 | CPUCLOCK_SCHED 2
}

static struct timespec to_timespec(uint64_t ns) {
  return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

// The first expiry at a random part of the period: else threads that live for less than a period
// would never be seen, and all others a little too often.
static uint64_t first_ns(uint64_t period_ns) {
  uint64_t x = cs_tsc() * 0x9E3779B97F4A7C15ull;
  return 1 + (x >> 32) % period_ns;
}

// Not of a thread that has ended meanwhile.
static bool is_news(int error) {
  return error != EINVAL && error != ESRCH;
}

bool cs_cpu_timer_start(struct cs_agent_thread *t) {
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = cs_core.signal_number;
  event.sigev_value.sival_ptr = t->thread;
  event._sigev_un._tid = (pid_t)t->tid;
  if (timer_create(cs_cpu_clock_of(t->tid), &event, &t->timer) != 0) {
    if (is_news(errno))
      cs_log_important("some threads are not sampled: no timer for them: %s%s", strerror(errno),
                       errno == EAGAIN ? " (raise ulimit -i)" : "");
    return false;
  }
  uint64_t period = cs_load_acquire(&cs_agent.period_ns);
  struct itimerspec when = {to_timespec(period), to_timespec(first_ns(period))};
  t->timer_ns = period;
  t->timer_set = 0;
  if (timer_settime(t->timer, 0, &when, NULL) != 0) {
    if (is_news(errno))
      cs_log_important("some threads are not sampled: their timer cannot be set: %s",
                       strerror(errno));
    (void)timer_delete(t->timer);
    return false;
  }
  t->has_timer = true;
  return true;
}

static uint64_t to_ns(struct timespec t) {
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// What is left of the period stays the same part of it: it is as likely as before, per period, that
// a sample falls into a given piece of the thread's time. Started anew, or left to run out, a
// period would be too short or too long for its weight, each time.
void cs_cpu_timer_change(struct cs_agent_thread *t) {
  uint64_t period = cs_load_acquire(&cs_agent.period_ns);
  struct itimerspec when;
  if (!t->has_timer || t->timer_ns == period || timer_gettime(t->timer, &when) != 0) return;
  double left = (double)to_ns(when.it_value) / (double)t->timer_ns;
  uint64_t first = (uint64_t)(left * (double)period);
  when = (struct itimerspec){to_timespec(period), to_timespec(first > 0 ? first : 1)};
  uint64_t now = cs_tsc();
  if (timer_settime(t->timer, 0, &when, NULL) != 0) return;
  t->timer_before_ns = t->timer_ns;
  t->timer_ns = period;
  t->timer_set = now;
}

void cs_cpu_timer_stop(struct cs_agent_thread *t) {
  if (t->has_timer) (void)timer_delete(t->timer);
  t->has_timer = false;
}
