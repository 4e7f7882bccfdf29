// SPDX-License-Identifier: MIT
// The engine "timer": a POSIX timer on each thread's own CPU clock, which sends the signal to that
// very thread. Threads that sleep cost nothing and are not woken. The kernel checks these timers at
// its tick only, so samples are no more frequent than the tick, and in step with it.
//
// Invariant: a timer exists only while its thread is in the list of threads. Threads: any, with the
// list's lock held; a thread's clock is named by its tid. Signal-safe: no.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "sampling/engine.h"
#include "threads/threads.h"

// A random part of the period, at least 1: when a thread's first sample is due. Were it the whole
// period, threads that live for less would never be seen, and all others too rarely.
static uint64_t random_part(uint64_t period_ns) {
  return 1 + cs_hash_word(cs_tsc(), 32) % period_ns;
}

// Without a sentence if the thread has ended.
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
  struct itimerspec when = {cs_timespec_of(period), cs_timespec_of(random_part(period))};
  t->timer_ns = period;
  t->timer_set = 0;
  if (timer_settime(t->timer, 0, &when, NULL) == 0) return true;
  (void)refuse(why, "their timer cannot be set");
  (void)timer_delete(t->timer);
  return false;
}

// The rest of the period remains the same fraction of it, so a sample is as likely as before, per
// period, to fall into a given piece of the thread's time. Restarted, or left to run out, each
// period would be too short or too long for its weight.
static void change(struct cs_agent_thread *t) {
  uint64_t period = cs_load_acquire(&cs_agent.period_ns);
  struct itimerspec when;
  if (t->timer_ns == period || timer_gettime(t->timer, &when) != 0) return;
  double left = (double)cs_timespec_ns(when.it_value) / (double)t->timer_ns;
  uint64_t first = (uint64_t)(left * (double)period);
  when = (struct itimerspec){cs_timespec_of(period), cs_timespec_of(first > 0 ? first : 1)};
  uint64_t now = cs_tsc();
  if (timer_settime(t->timer, 0, &when, NULL) != 0) return;
  t->timer_before_ns = t->timer_ns;
  t->timer_ns = period;
  t->timer_set = now;
}

static void stop(struct cs_agent_thread *t) {
  (void)timer_delete(t->timer);
}

// The period with which the timer sent the sample's signal, for each of its expirations.
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
