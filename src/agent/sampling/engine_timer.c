// SPDX-License-Identifier: MIT
// The engine "timer": a POSIX timer on each thread's own CPU clock, which sends the signal to that
// very thread. What sleeps costs nothing and is not woken. The kernel looks at these timers in its
// tick only, so that samples are no more frequent than that, and in step with it.
//
// Invariant: a timer exists only while its thread's entry is in the list of threads (threads.c,
// under its lock). Any thread may make one: a thread's clock is named by its tid. Signal-safe: no.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "sampling/engine.h"

static struct timespec to_timespec(uint64_t ns) {
  return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

// Nothing to say of a thread that has ended meanwhile.
static bool refuse(struct cs_error *why, const char *what) {
  if (errno == EINVAL || errno == ESRCH) return false;
  return cs_error_set(why, "%s: %s%s", what, strerror(errno),
                      errno == EAGAIN ? " (raise ulimit -i)" : "");
}

static bool start(struct cs_agent_thread *t, struct cs_error *why) {
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = cs_threads.signal_number;
  event.sigev_value.sival_ptr = t->thread;
  event._sigev_un._tid = (pid_t)t->tid;
  if (timer_create(cs_cpu_clock_of(t->tid), &event, &t->timer) != 0)
    return refuse(why, "no timer for them");
  uint64_t period = cs_load_acquire(&cs_agent.period_ns);
  struct itimerspec when = {to_timespec(period), to_timespec(cs_first_of(period))};
  t->timer_ns = period;
  t->timer_set = 0;
  if (timer_settime(t->timer, 0, &when, NULL) == 0) return true;
  (void)refuse(why, "their timer cannot be set");
  (void)timer_delete(t->timer);
  return false;
}

static uint64_t to_ns(struct timespec t) {
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// What is left of the period stays the same part of it: it is as likely as before, per period, that
// a sample falls into a given piece of the thread's time. Started anew, or left to run out, a
// period would be too short or too long for its weight, each time.
static void change(struct cs_agent_thread *t) {
  uint64_t period = cs_load_acquire(&cs_agent.period_ns);
  struct itimerspec when;
  if (t->timer_ns == period || timer_gettime(t->timer, &when) != 0) return;
  double left = (double)to_ns(when.it_value) / (double)t->timer_ns;
  uint64_t first = (uint64_t)(left * (double)period);
  when = (struct itimerspec){to_timespec(period), to_timespec(first > 0 ? first : 1)};
  uint64_t now = cs_tsc();
  if (timer_settime(t->timer, 0, &when, NULL) != 0) return;
  t->timer_before_ns = t->timer_ns;
  t->timer_ns = period;
  t->timer_set = now;
}

static void stop(struct cs_agent_thread *t) {
  (void)timer_delete(t->timer);
}

// The period of the timer that has sent the sample's signal, for each of its expirations.
uint64_t cs_timer_weight(const struct cs_agent_thread *t, const struct cs_sample *s) {
  uint64_t period = s->tsc < t->timer_set ? t->timer_before_ns : t->timer_ns;
  return period * (1 + (uint64_t)s->overrun);
}

static const char *unseen(void) {
  static char text[160];
  struct timespec tick = {0};
  (void)clock_getres(CLOCK_REALTIME_COARSE, &tick);  // which advances by ticks
  (void)snprintf(text, sizeof text,
                 "it samples at the kernel's tick, %ld times a second: what wakes at a tick "
                 "and sleeps before the next is shown too small or too large",
                 tick.tv_nsec > 0 ? 1000000000 / tick.tv_nsec : 0);
  return text;
}

const struct cs_engine cs_engine_timer = {
    .kind = CS_WIRE_ENGINE_TIMER,
    .unseen = unseen,
    .start = start,
    .stop = stop,
    .change = change,
};
