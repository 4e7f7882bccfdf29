// SPDX-License-Identifier: MIT
// Samples of a thread whose perf event (its task clock, or another count) has overflowed: the
// kernel sends the thread SIGURG. Signal-safe: yes; two raw system calls beside what a sample
// needs.
//
// Invariants: an event signals once and is then disarmed by the kernel until its thread's handler,
// or the agent, arms it again. So signals never pile up, and a slow thread still has time of its
// own. The descriptor is used only inside the epoch, and closed only after it has been taken out of
// the entry and the epoch has passed.
//
// The time between two samples is random, evenly between a half and three halves of the period, so
// that a periodic program is not in step with it. A late signal shortens the next wait, which keeps
// the rate. A count is random in the same way, without the correction; its sample stands for what
// the event has been armed with since the last one.
#include "signal/perf.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "base/random.h"
#include "signal/kernel.h"

enum { COOLDOWN_PERIODS = 8 };  // periods of a count by which a thread in its cooldown waits longer

// Returns half a period to three halves, evenly distributed.
CS_ISLAND static uint64_t next_wait(struct cs_perf_event *event, uint64_t period) {
  return period / 2 + cs_random_next(&event->random) % period;
}

CS_ISLAND uint64_t cs_perf_wait(struct cs_perf_event *event, uint64_t now_ns, uint64_t period_ns,
                                uint64_t least_ns) {
  int64_t late = (int64_t)(now_ns - event->due_ns);
  if (late > (int64_t)period_ns || late < -(int64_t)period_ns) event->due_ns = now_ns;
  event->due_ns += next_wait(event, period_ns);
  int64_t wait = (int64_t)(event->due_ns - now_ns);
  if (least_ns < period_ns / 4) least_ns = period_ns / 4;
  return wait > (int64_t)least_ns ? (uint64_t)wait : least_ns;
}

// Returns how long the cooldown still lasts, by the time-stamp counter.
CS_ISLAND static uint64_t cooldown_ns(const struct cs_cooldown *cooldown) {
  uint64_t now = cs_tsc();
  return cooldown->until > now ? cs_scale(cooldown->until - now, cs_signal.ns_of_tick) : 0;
}

// A count says nothing about time, so a thread in its cooldown just waits for a larger one.
CS_ISLAND static uint64_t count_on(struct cs_thread *thread, uint64_t period) {
  uint64_t wait = next_wait(&thread->perf, period);
  if (cooldown_ns(&thread->cooldown) > 0) wait += COOLDOWN_PERIODS * period;
  if (wait == 0) wait = 1;
  thread->perf.counted += wait;
  return wait;
}

// The kernel keeps only the first of two pending signals of one number, so another one may have
// taken the place of the event's. A forked child has the entry, but no table. Whether a count is
// due is not known; the agent arms it again.
CS_ISLAND bool cs_perf_is_due(const struct cs_thread *thread) {
  const uint32_t *threads = cs_load_acquire(&cs_signal.perf_threads);
  int fd = cs_load_acquire(&thread->perf.fd);
  return fd > 0 && threads != NULL && cs_load_acquire(&threads[fd]) == thread->index + 1 &&
         cs_load_relaxed(&cs_signal.counts) == 0 &&
         (int64_t)(cs_thread_cpu_ns() - thread->perf.due_ns) >= 0;
}

CS_ISLAND void cs_perf_rearm(struct cs_thread *thread, uint64_t now_ns) {
  uint32_t parity = cs_epoch_enter(&cs_signal.epoch);
  int fd = cs_load_acquire(&thread->perf.fd);
  uint64_t period = cs_load_relaxed(&cs_signal.period);
  if (fd > 0 && period > 0 && cs_thread_is_caller(thread)) {
    bool counts = cs_load_relaxed(&cs_signal.counts) != 0;
    uint64_t wait =
        counts ? count_on(thread, period)
               : cs_perf_wait(&thread->perf, now_ns, period, cooldown_ns(&thread->cooldown));
    cs_kernel_forget(&thread->perf);
    (void)cs_syscall4(SYS_ioctl, fd, PERF_EVENT_IOC_PERIOD, (long)(uintptr_t)&wait, 0);
    (void)cs_syscall4(SYS_ioctl, fd, PERF_EVENT_IOC_REFRESH, 1, 0);
  }
  cs_epoch_leave(&cs_signal.epoch, parity);
}

// Only the kernel, or the thread itself, sends codes above 0. The table has the descriptors of all
// our events: another file's is not in it, or belongs to another thread's entry.
CS_ISLAND struct cs_thread *cs_perf_thread_of(const siginfo_t *info) {
  uint32_t *threads = cs_load_acquire(&cs_signal.perf_threads);
  if (info->si_code < POLL_IN || info->si_code > POLL_HUP || threads == NULL || info->si_fd < 0 ||
      (uint32_t)info->si_fd >= CS_PERF_MAX_FD)
    return NULL;
  uint32_t index = cs_load_acquire(&threads[info->si_fd]);
  if (index == 0) return NULL;
  struct cs_thread *first = (struct cs_thread *)(uintptr_t)cs_signal.threads_lo;
  return &first[index - 1];
}
