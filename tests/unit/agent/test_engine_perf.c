// SPDX-License-Identifier: MIT
// The perf engine on threads of this program, without a runtime: the rate, the weights of samples,
// and the ways in which the engine's signal could harm the program. The descriptors are tested in
// test_engine_files.c. Skipped, with the engine's reason, where this user may not use perf events.
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/perf.h"
#include "engines/perf_cost.h"
#include "signal/perf.h"
#include "support/engine_run.h"

// ---- Waits ----

static void waits_are_random_and_a_period_on_average(void **state) {
  (void)state;
  enum { COUNT = 100000, PERIOD = 1000000, BINS = 10 };
  struct cs_perf_event event = {.due_ns = 5000, .random = 1234567};
  unsigned phases[BINS] = {0};
  uint64_t now = event.due_ns, begin_ns = now;
  for (int i = 0; i < COUNT; i++) {
    uint64_t wait = cs_perf_wait(&event, now, PERIOD, 0);
    assert_in_range(wait, PERIOD / 4, PERIOD * 7 / 4);
    now += wait + 7000;  // somewhat late
    phases[now % PERIOD * BINS / PERIOD]++;
  }
  double mean = (double)(now - begin_ns) / COUNT;
  assert_true(mean > 0.99 * PERIOD && mean < 1.01 * PERIOD);
  // A program whose behaviour recurs with the same period is sampled in all of its phases.
  for (int i = 0; i < BINS; i++)
    assert_in_range(phases[i], COUNT / BINS * 9 / 10, COUNT / BINS * 11 / 10);
  uint64_t wait =
      cs_perf_wait(&event, now + 50 * PERIOD, PERIOD, 0);  // missed samples are not made up for
  assert_in_range(wait, PERIOD / 2, PERIOD * 3 / 2);
  assert_true(cs_perf_wait(&event, event.due_ns, PERIOD, 9 * PERIOD) == 9 * PERIOD);
}

// ---- The rate and the weights ----

static bool has_rate(uint32_t hz, uint64_t ns, double least, char why[128]) {
  char engine_why[256];
  begin(hz, CS_WIRE_ENGINE_PERF);
  uint64_t from = own_cpu();
  cs_threads_add_native(own_tid());
  taken_away = (struct gaps){0, 0};
  burn(ns);
  struct sums sums = drain();
  uint64_t used = own_cpu() - from;
  cs_threads_stop();
  struct cs_wire_engine engine = told(engine_why);
  end();
  assert_int_equal(engine.used, CS_WIRE_ENGINE_PERF);
  // A gap has a sample, however long it is.
  double want = (double)(used - taken_away.ns) * hz / 1e9, period = 1e9 / hz;
  // The last sample is as late as other threads on the processor make it.
  double off = (double)sums.weight - (double)used, most = 2 * period > MS ? 2 * period : MS;
  (void)snprintf(why, 128, "%lu samples at %u Hz instead of %.0f; they stand for %.3f ms of %.3f",
                 (unsigned long)sums.samples, hz, want, (double)sums.weight / 1e6,
                 (double)used / 1e6);
  return (double)sums.samples > least * want &&
         (double)sums.samples < 1.1 * want + (double)taken_away.count && off > -most &&
         off < most && (double)engine.cpu_ns > 0.9 * (double)used &&
         (double)engine.cpu_ns < 1.1 * (double)used;
}

// In some virtual machines a signal takes a fifth of the shortest period, in which no other comes,
// and the processor is taken away for many such periods. Whatever the rate, has_rate holds the
// weights.
static bool has_rates(char why[128]) {
  return has_rate(499, 1000 * MS, 0.9, why) && has_rate(1000, 1000 * MS, 0.9, why) &&
         has_rate(9999, 500 * MS, 0.4, why);
}

static void the_rate_is_the_one_that_was_asked_for(void **state) {
  (void)state;
  measure_in_tries(has_rates);
}

static uint64_t short_used;
static void *live_shortly(void *unused) {
  (void)unused;
  cs_threads_add_native(own_tid());
  uint64_t from = own_cpu();
  burn(400000);
  short_used += own_cpu() - from;
  return NULL;
}

// Threads that live for less than a period, alternating with one that stays.
static bool have_their_share(char why[128]) {
  enum { COUNT = 2500 };
  uint64_t weight = 0;
  begin(1000, CS_WIRE_ENGINE_PERF);
  int before = count_fds();
  short_used = 0;
  for (int i = 0; i < COUNT; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, live_shortly, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    cs_threads_sweep_native();  // removes the thread, which no scan has found
    (void)cs_engines_poll(cs_clock_now_ns());
    weight += drain().weight;
    cs_threads_free_dead();
  }
  cs_threads_sweep_native();
  (void)cs_engines_poll(cs_clock_now_ns());
  assert_int_equal(count_fds(), before);
  end();
  double share = (double)weight / (double)short_used;
  (void)snprintf(why, 128, "samples stand for %.3f of their time", share);
  return share > 0.85 && share < 1.15;
}

static void threads_that_come_and_go_have_their_share(void **state) {
  (void)state;
  measure_in_tries(have_their_share);
}

static void *live_longer(void *unused) {
  (void)unused;
  cs_threads_add_native(own_tid());
  burn(100 * MS);
  return NULL;
}

// Nobody says when a native thread ends, and its clock ends with it.
static void the_time_of_a_native_thread_that_has_ended_is_known(void **state) {
  (void)state;
  char why[256];
  pthread_t thread;
  begin(1000, CS_WIRE_ENGINE_PERF);
  assert_int_equal(pthread_create(&thread, NULL, live_longer, NULL), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  cs_threads_sweep_native();
  uint64_t weight = drain().weight;
  cs_threads_stop();
  uint64_t known = told(why).cpu_ns;
  assert_true(weight > 50 * MS);
  assert_in_range(known, weight * 8 / 10, weight * 12 / 10);
  end();
}

// ---- Signals ----

static unsigned long queued(void) {
  char line[128];
  unsigned long count = 0;
  FILE *in = fopen("/proc/self/status", "re");
  while (fgets(line, sizeof line, in) != NULL) (void)sscanf(line, "SigQ: %lu", &count);
  (void)fclose(in);
  return count;
}

static void a_thread_that_blocks_the_signal_has_one_pending_at_most(void **state) {
  (void)state;
  sigset_t urg, before, pending;
  begin(9999, CS_WIRE_ENGINE_PERF);
  (void)sigemptyset(&urg);
  (void)sigaddset(&urg, SIGURG);
  unsigned long queue = queued();
  (void)pthread_sigmask(SIG_BLOCK, &urg, &before);
  cs_threads_add_native(own_tid());
  for (uint64_t i = 0; i < 10; i++) {
    burn(20 * MS);
    (void)cs_engines_poll(cs_clock_now_ns() +
                          i * 1000 * MS);  // late enough to check all events each time
  }
  (void)sigpending(&pending);
  assert_int_equal(sigismember(&pending, SIGURG), 1);  // otherwise the test has tried nothing
  assert_true(queued() < queue + 200);  // of this user; 2,000 expirations could have been queued
  assert_int_equal(drain().samples, 0);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  assert_true(burn_for(51, 50 * MS) > 50);  // the thread is sampled from now on
  end();
}

static int without_pending_signals(void) {
  struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_SIGPENDING, &none) != 0) return 1;
  begin(9999, CS_WIRE_ENGINE_PERF);
  cs_threads_add_native(own_tid());
  return burn_for(101, 100 * MS) > 100 ? 0 : 2;  // of 1,000, on whatever machine
}

static void no_signal_may_be_queued(void **state) {
  (void)state;
  in_child(without_pending_signals);
}

static void foreign_signals_are_nothing_to_it(void **state) {
  (void)state;
  begin(1, CS_WIRE_ENGINE_PERF);
  cs_agent.period_ns = 3600ull * 1000 * MS;  // no event of its own while this runs
  cs_threads_add_native(own_tid());
  (void)raise(SIGURG);
  (void)kill(getpid(), SIGURG);
  siginfo_t info;
  memset(&info, 0, sizeof info);
  for (int fd = -1; fd < 5000;
       fd++) {  // as the kernel would send it, for descriptors that are not events
    info.si_signo = SIGURG;
    info.si_code = POLL_IN;
    info.si_fd = fd == 4096 ? -5 : fd;
    (void)syscall(SYS_rt_tgsigqueueinfo, getpid(), own_tid(), SIGURG, &info);
    if (fd == 4090) fd = 4300;
  }
  assert_int_equal(cs_agent.ring.signals, 0);
  end();
}

static int uses_urg(void) {
  char why[256] = "";
  (void)signal(SIGURG, on_urg);
  open_recording(999, CS_WIRE_ENGINE_PERF);
  if (cs_engines_begin(&err) || strstr(err.text, "SIGURG") == NULL) return 1;
  begin(999, CS_WIRE_ENGINE_AUTO);
  struct cs_wire_engine engine = told(why);
  if (engine.used == CS_WIRE_ENGINE_PERF || strstr(why, "SIGURG") == NULL) return 2;
  (void)raise(SIGURG);
  return handled == 1 ? 0 : 3;
}

static int begins_to_use_urg(void) {
  char why[256] = "";
  begin(999, CS_WIRE_ENGINE_AUTO);
  cs_threads_add_native(own_tid());
  (void)signal(SIGURG, on_urg);
  (void)cs_engines_poll(cs_clock_now_ns());
  struct cs_wire_engine engine = told(why);
  if (engine.used == CS_WIRE_ENGINE_PERF || strstr(why, "SIGURG") == NULL) return 1;
  handled = 0;
  burn(300 * MS);
  if (handled != 0) return 2;
  end();
  struct sigaction now;
  (void)sigaction(SIGURG, NULL, &now);
  return now.sa_handler == on_urg ? 0 : 3;
}

static void a_program_that_uses_the_signal_keeps_it(void **state) {
  (void)state;
  in_child(uses_urg);
  in_child(begins_to_use_urg);
  struct sigaction now;
  (void)sigaction(SIGURG, NULL, &now);  // otherwise it is restored
  assert_ptr_equal(now.sa_handler, SIG_DFL);
}

// A server's threads switch tens of thousands of times a second, those of a computation hardly
// ever.
static void what_its_events_cost_is_judged_by_the_programs_switches(void **state) {
  (void)state;
  const struct cs_perf_use begin = {1000, 5000000000}, server = {51000, 6000000000},
                           computation = {1400, 6000000000}, start = {51000, 5010000000};
  struct cs_error why = {""};
  assert_true(cs_perf_costs_too_much(1000, begin, server, &why));  // 1 us, 50,000 times a second
  assert_non_null(strstr(why.text, "some 5 % of its CPU time, 1.0 us"));
  assert_true(cs_perf_costs_too_much(21000, begin, server, &why));
  assert_non_null(strstr(why.text, "program more than all of its CPU time, 21.0 us"));
  assert_false(cs_perf_costs_too_much(300, begin, server, &why));
  assert_false(cs_perf_costs_too_much(10000, begin, computation, &why));
  assert_false(cs_perf_costs_too_much(1000, begin, start, &why));  // too little to judge by
  assert_false(cs_perf_costs_too_much(1000, begin, begin, &why));
}

// It decides between engines, so chance must not: a timer that is not programmed by chance once
// made it 0, and perf engine took 40 % of a server's requests.
static void what_a_switch_costs_is_measured_alike(void **state) {
  (void)state;
  uint64_t least = UINT64_MAX, most = 0;
  for (int i = 0; i < 15; i++) {
    uint64_t ns = cs_perf_switch_ns();
    if (ns < least) least = ns;
    if (ns > most) most = ns;
  }
  assert_true(least > 0);
  if (most > 4 * least + 1000) fail_msg("%lu to %lu ns", least, most);
}

static int ping[2], pong[2];
static void *answer_pings(void *unused) {
  char byte;
  (void)unused;
  while (read(ping[0], &byte, 1) == 1 && write(pong[1], &byte, 1) == 1) {
  }
  return NULL;
}

static uint64_t cpu_of_all(void) {
  struct timespec t;
  assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
  return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

// Uses more than a second of CPU time, most of it for switches between two threads.
static void *switch_often(void *unused) {
  pthread_t other;
  char byte = 0;
  assert_int_equal(pipe(ping), 0);
  assert_int_equal(pipe(pong), 0);
  assert_int_equal(pthread_create(&other, NULL, answer_pings, NULL), 0);
  for (uint64_t from = cpu_of_all(); cpu_of_all() - from < 1200 * MS;)
    assert_true(write(ping[1], &byte, 1) == 1 && read(pong[0], &byte, 1) == 1);
  (void)close(ping[1]);
  (void)pthread_join(other, NULL);
  (void)close(ping[0]);
  (void)close(pong[0]);
  (void)close(pong[1]);
  return unused;
}

static bool stop_computing;
static void *compute(void *unused) {
  while (!__atomic_load_n(&stop_computing, __ATOMIC_RELAXED)) burn(MS);
  return unused;
}

// The part of its CPU time that a program would lose, in percent, by the sentence that says so.
static unsigned percent_in(const struct cs_error *error) {
  unsigned percent = 101;
  const char *some = strstr(error->text, "some ");
  if (some != NULL) assert_int_equal(sscanf(some, "some %u %%", &percent), 1);
  return percent;
}

// On a busy machine a thread that computes loses its processor often, too, but far less often.
static bool is_not_judged_by_its_past(char why[128]) {
  struct cs_error past = {""}, error = {""};
  pthread_t thread;
  stop_computing = false;
  assert_int_equal(pthread_create(&thread, NULL, compute, NULL), 0);
  assert_true(cs_perf_costs_too_much(cs_perf_switch_ns(), (struct cs_perf_use){0, 0},
                                     cs_perf_use_now(), &past));
  bool good = cs_perf_cost_begin(&error) || 3 * percent_in(&error) < percent_in(&past);
  (void)snprintf(why, 128, "%.127s", error.text);
  __atomic_store_n(&stop_computing, true, __ATOMIC_RELAXED);
  assert_int_equal(pthread_join(thread, NULL), 0);
  return good;
}

static void a_program_that_has_switched_often_may_have_stopped(void **state) {
  (void)state;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, switch_often, NULL), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  measure_in_tries(is_not_judged_by_its_past);
}

// In a child, whose only thread is this one.
static int nap_often(void) {
  enum { NAPS = 500 };
  struct cs_perf_use from = cs_perf_use_now();
  for (int i = 0; i < NAPS; i++) (void)nanosleep(&(struct timespec){0, 1000}, NULL);
  return cs_perf_use_now().switches < from.switches + NAPS / 10 ? 0 : 1;
}

static void the_agents_switches_are_not_the_programs(void **state) {
  (void)state;
  in_child(nap_often);
}

int main(void) {
  if (!cs_perf_probe(0, true, &err)) {
    printf("skipped: %s\n", err.text);
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(what_its_events_cost_is_judged_by_the_programs_switches,
                                end_failed),
      cmocka_unit_test_teardown(what_a_switch_costs_is_measured_alike, end_failed),
      cmocka_unit_test_teardown(a_program_that_has_switched_often_may_have_stopped, end_failed),
      cmocka_unit_test_teardown(the_agents_switches_are_not_the_programs, end_failed),
      cmocka_unit_test_teardown(waits_are_random_and_a_period_on_average, end_failed),
      cmocka_unit_test_teardown(the_rate_is_the_one_that_was_asked_for, end_failed),
      cmocka_unit_test_teardown(threads_that_come_and_go_have_their_share, end_failed),
      cmocka_unit_test_teardown(the_time_of_a_native_thread_that_has_ended_is_known, end_failed),
      cmocka_unit_test_teardown(a_thread_that_blocks_the_signal_has_one_pending_at_most,
                                end_failed),
      cmocka_unit_test_teardown(no_signal_may_be_queued, end_failed),
      cmocka_unit_test_teardown(foreign_signals_are_nothing_to_it, end_failed),
      cmocka_unit_test_teardown(a_program_that_uses_the_signal_keeps_it, end_failed),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
