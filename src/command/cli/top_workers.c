// SPDX-License-Identifier: MIT
// Invariants: `top` never waits for the observer; the observer is a child that dies with the
// command, and is waited for by its own id; if it dies, the kernel resumes the program. The scans
// take at most a fiftieth of a processor. One thread, in each of the two processes. Signal-safe:
// no.
#include "cli/top_workers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/stack_parts.h"
#include "session/scans.h"

enum { CPU_SHARE = 50 };
#define LEAST_NS 10000000000ull  // from the end of a scan to the next one

// ---- The observer ----

static void run_scan(int to, pid_t pid, const struct cs_scans_ask *ignored) {
  (void)ignored;
  const struct cs_outside_options options = {.once = true};
  struct cs_error err = {""};
  struct cs_top_cause cause = {.place = ""};
  struct cs_outside *outside = cs_outside_take(pid, &options, &err);
  const struct cs_outside_pool *pool = outside != NULL ? &outside->pool : NULL;
  if (pool == NULL) {
    (void)snprintf(cause.why, sizeof cause.why, "%s", err.text);
  } else if (pool->now.state != CS_POOL_KNOWN) {
    (void)snprintf(cause.why, sizeof cause.why, "the pool cannot be read: %s", pool->now.why);
  } else if (pool->wait_count > 0) {
    cause.waiting = pool->waits[0].workers;
    cause.workers = pool->running + pool->waiting + pool->idle;
    cause.queued = pool->now.queued;
    cs_stack_wait_place(&pool->waits[0], cause.place, sizeof cause.place);
  }
  _Static_assert(sizeof cause <= PIPE_BUF, "a pipe takes it as a whole");
  (void)!write(to, &cause, sizeof cause);
}

// ---- The command ----

static void fail(struct cs_top_workers *w, uint64_t now_ns, const char *why) {
  w->cause = (struct cs_top_cause){.place = ""};
  (void)snprintf(w->cause.why, sizeof w->cause.why, "%s", why);
  w->scanned_ns = now_ns;
  w->next_ns = now_ns + LEAST_NS;
}

static void begin(struct cs_top_workers *w, pid_t pid, uint64_t now_ns) {
  const char *why = "the observing process could not be started";
  w->observer = cs_observer_start(run_scan, pid, NULL, &w->from, &why);
  if (w->observer == 0) fail(w, now_ns, why);
}

// Takes in the answer, if there is one.
static void take(struct cs_top_workers *w, uint64_t now_ns) {
  struct cs_top_cause cause;
  struct rusage used = {.ru_utime = {0}};
  ssize_t got = read(w->from, &cause, sizeof cause);
  if (got < 0) return;  // not yet
  if (got != (ssize_t)sizeof cause) {
    cs_top_workers_end(w);
    fail(w, now_ns, "the observing process has ended");
    return;
  }
  while (wait4(w->observer, NULL, 0, &used) < 0 && errno == EINTR) {
  }
  w->observer = 0;
  (void)close(w->from);
  cause.place[sizeof cause.place - 1] = cause.why[sizeof cause.why - 1] = '\0';
  // A scan that finds no worker waiting says less than the one before.
  if (cause.place[0] != '\0' || cause.why[0] != '\0') w->cause = cause;
  uint64_t cpu_us = 1000000ull * (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                    (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  uint64_t rest = cpu_us * 1000 * CPU_SHARE;
  w->scanned_ns = now_ns;
  w->next_ns = now_ns + (rest > LEAST_NS ? rest : LEAST_NS);
}

void cs_top_workers_see(struct cs_top_workers *w, pid_t pid, uint64_t now_ns,
                        struct cs_top_pool *pool) {
  if (w->observer != 0) take(w, now_ns);
  if (!pool->starved) {
    if (w->observer == 0) w->cause = (struct cs_top_cause){.place = ""};
    return;
  }
  if (w->observer == 0 && now_ns >= w->next_ns) begin(w, pid, now_ns);
  pool->cause = w->cause;
  pool->cause.age_s = (double)(now_ns - w->scanned_ns) / 1e9;
}

void cs_top_workers_end(struct cs_top_workers *w) {
  cs_observer_end(&w->observer, w->from);
}
