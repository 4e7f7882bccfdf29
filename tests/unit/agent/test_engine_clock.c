// SPDX-License-Identifier: MIT
// The clock engine on threads of this program, without a runtime.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engines/ask.h"
#include "engines/engine.h"
#include "support/engine_run.h"

// ---- Where a sandbox refuses what it needs ----

static int is_told(unsigned call, const char *what) {
  open_recording(999, CS_WIRE_ENGINE_CLOCK);
  if (!refuse(call)) return 1;
  if (cs_engines_begin(&err)) return 2;
  if (strstr(err.text, "Operation not permitted") == NULL) return 3;
  return strstr(err.text, what) != NULL ? 0 : 4;
}

static int no_clocks(void) {
  return is_told(SYS_clock_gettime, "allow clock_gettime");
}

static int no_files(void) {
  return is_told(SYS_openat, "mount /proc");
}

static int no_signals(void) {
  return is_told(SYS_rt_tgsigqueueinfo, "allow rt_tgsigqueueinfo");
}

static void what_is_refused_is_told(void **state) {
  (void)state;
  in_child(no_clocks);
  in_child(no_files);
  in_child(no_signals);
}

// ---- What samples stand for ----

static bool burnt, counted;
static uint64_t used;

// At this rate, the cost of a scan does not decide how many there are, on a slow machine either.
enum { RARELY_HZ = 49, PERIOD_NS = 1000000000 / RARELY_HZ };

static void *live_shortly(void *unused) {
  (void)unused;
  cs_threads_add_native(own_tid());
  uint64_t from = own_cpu();
  burn(3ull * PERIOD_NS);
  used += own_cpu() - from;
  cs_store_release(&burnt, true);
  while (!cs_load_acquire(&counted)) (void)usleep(100);
  return NULL;
}

// Takes the scans that fall due until the thread has used its time; every other one comes too late.
static void scan_until_burnt(void) {
  static bool late;
  while (!cs_load_acquire(&burnt)) {
    uint64_t due = cs_engines_poll(cs_clock_now_ns());
    struct timespec until = cs_timespec_of(due + (late ? 2 * MS : 0));
    late = !late;
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  }
}

// Threads that live for three periods, whose time is known when they end. Scans that come late are
// left out, and so late that the others would stand for half of the time.
static bool stand_for_their_time(char why[128]) {
  enum { COUNT = 60 };
  char engine_why[256];
  uint64_t weight = 0;
  begin(RARELY_HZ, CS_WIRE_ENGINE_CLOCK);
  cs_asks_begin();
  used = 0;
  for (int i = 0; i < COUNT; i++) {
    pthread_t thread;
    burnt = counted = false;
    assert_int_equal(pthread_create(&thread, NULL, live_shortly, NULL), 0);
    scan_until_burnt();
    weight += drain().weight;
    // Twice without a scan for native threads in between: the thread is removed while its clock can
    // still be read.
    cs_threads_sweep_native();
    cs_threads_sweep_native();
    cs_store_release(&counted, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    cs_threads_free_dead();
  }
  // The threads have also used some to begin and to end, more on a loaded machine.
  cs_threads_stop();
  uint64_t all = told(engine_why).cpu_ns;
  end();
  double share = (double)weight / (double)all;
  (void)snprintf(why, 128, "samples stand for %.3f of their time, %.3f s instead of %.3f", share,
                 (double)all / 1e9, (double)used / 1e9);
  return all > used && share > 0.75 && share < 1.35;
}

static void samples_stand_for_the_time_that_threads_have_used(void **state) {
  (void)state;
  measure_in_tries(stand_for_their_time);
}

static void *live_on(void *unused) {
  (void)unused;
  cs_threads_add_native(own_tid());
  uint64_t from = own_cpu();
  burn(400 * MS);
  cs_store_release(&burnt, true);
  burn(800 * MS);
  used = own_cpu() - from;
  cs_store_release(&counted, true);
  return NULL;
}

// A thread uses a third of its time before any scan meets it. Later samples stand for that time as
// well, but not several times.
static bool make_up_for_it_once(char why[128]) {
  pthread_t thread;
  burnt = counted = false;
  begin(999, CS_WIRE_ENGINE_CLOCK);
  cs_asks_begin();
  assert_int_equal(pthread_create(&thread, NULL, live_on, NULL), 0);
  while (!cs_load_acquire(&burnt)) (void)usleep(1000);
  while (!cs_load_acquire(&counted)) {
    struct timespec until = cs_timespec_of(cs_engines_poll(cs_clock_now_ns()));
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  }
  uint64_t weight = drain().weight;
  assert_int_equal(pthread_join(thread, NULL), 0);
  cs_threads_sweep_native();
  end();
  double share = (double)weight / (double)used;
  (void)snprintf(why, 128, "samples stand for %.3f of its time", share);
  return share > 0.7 && share < 1.3;
}

static void time_that_no_scan_has_met_is_made_up_for_once(void **state) {
  (void)state;
  measure_in_tries(make_up_for_it_once);
}

// ---- Where signals to other processors take long ----

static cpu_set_t mask_of_scans(void) {
  cpu_set_t mask;
  assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
  return mask;
}

// Signals have taken long so far. From then on, each scan is on one processor, and its samples
// stand for both threads all the same.
static bool one_processor_stands_for_all(char why[128]) {
  enum { BOTH = 2 };
  pthread_t threads[BOTH];
  cpu_set_t before = mask_of_scans();
  unsigned on_one = 0, scanned = 0;
  char engine_why[256];
  begin(499, CS_WIRE_ENGINE_CLOCK);
  cs_asks_begin();
  cs_store_relaxed(&cs_agent.tid, own_tid());
  cs_add_relaxed(&cs_agent.ring.ran_on[8], 1000u);  // 128 to 256 us
  burnt = counted = false;
  for (int i = 0; i < BOTH; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, live_on, NULL), 0);
  while (!cs_load_acquire(&counted)) {
    struct timespec until = cs_timespec_of(cs_engines_poll(cs_clock_now_ns()));
    cpu_set_t now = mask_of_scans();
    on_one += CPU_COUNT(&now) == 1;
    scanned++;
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  }
  for (int i = 0; i < BOTH; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  struct sums sums = drain();
  bool is_said = strstr(cs_engine_clock.unseen(), "processors, because") != NULL;
  cs_threads_sweep_native();
  cs_threads_stop();
  double share = (double)sums.weight / (double)told(engine_why).cpu_ns;
  end();
  cpu_set_t after = mask_of_scans();
  assert_true(CPU_EQUAL(&before, &after));
  (void)snprintf(why, 128, "samples stand for %.3f of the time; %u of %u scans on one processor%s",
                 share, on_one, scanned, is_said ? "" : "; not said");
  return share > 0.75 && share < 1.3 && on_one > scanned * 3 / 4 && is_said;
}

static void a_scan_of_one_processor_stands_for_all(void **state) {
  (void)state;
  measure_in_tries(one_processor_stands_for_all);
}

// ---- When scans come ----

enum { SLEEPERS = 60, SCANS = 100 };

static pthread_barrier_t wake;

static void *run_when_woken(void *unused) {
  (void)unused;
  cs_threads_add_native(own_tid());
  for (int i = 0; i <= SCANS; i++) (void)pthread_barrier_wait(&wake);
  return NULL;
}

// Every other scan finds that many threads have run since, and costs more. If the next scan waited
// for longer because of that, it would come in step with the program, and weigh more.
static bool costly_scans_delay_nothing(char why[128]) {
  pthread_t threads[SLEEPERS];
  uint64_t after[2] = {0, 0}, taken_ns[2] = {0, 0};
  begin(999, CS_WIRE_ENGINE_CLOCK);
  cs_asks_begin();
  assert_int_equal(pthread_barrier_init(&wake, NULL, SLEEPERS + 1), 0);
  for (int i = 0; i < SLEEPERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, run_when_woken, NULL), 0);
  (void)pthread_barrier_wait(&wake);
  uint64_t due = cs_engines_poll(cs_clock_now_ns());
  for (unsigned i = 1; i <= 2 * SCANS; i++) {
    unsigned costly = i % 2;
    if (costly) (void)pthread_barrier_wait(&wake);
    (void)usleep(2000);  // until they sleep again
    uint64_t began = own_cpu(), next = cs_engines_poll(due);
    taken_ns[costly] += own_cpu() - began;
    after[costly] += next - due;
    due = next;
    (void)drain();
  }
  for (int i = 0; i < SLEEPERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  (void)pthread_barrier_destroy(&wake);
  end();
  double costs = (double)taken_ns[1] / (double)taken_ns[0];
  double waits = (double)after[1] / (double)after[0];
  double part = (double)(taken_ns[0] + taken_ns[1]) / (double)(after[0] + after[1]);
  (void)snprintf(why, 128,
                 "costly scans take %.1f times as long, after them %.2f times; %.4f of a processor "
                 "instead of an eightieth",
                 costs, waits, part);
  return costs > 2 && waits <= 1.5 && part <= 1.0 / 54;
}

static void a_costly_scan_does_not_delay_the_next_one(void **state) {
  (void)state;
  measure_in_tries(costly_scans_delay_nothing);
}

static bool over;

static void *run_now_and_then(void *unused) {
  (void)unused;
  cs_threads_add_native(own_tid());
  while (!cs_load_acquire(&over)) {
    burn(MS / 5);
    (void)usleep(50000);
  }
  return NULL;
}

// Scans of many threads that use a part of one processor: they may take a part of what the program
// uses, not the same part of a whole processor.
static bool scans_take_their_part(char why[128]) {
  enum { SETTLING = 100 };
  pthread_t threads[SLEEPERS];
  uint64_t scans_ns = 0, began = 0, all_began = 0;
  begin(999, CS_WIRE_ENGINE_CLOCK);
  cs_asks_begin();
  cs_store_release(&over, false);
  for (int i = 0; i < SLEEPERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, run_now_and_then, NULL), 0);
  for (unsigned i = 0; i < SETTLING + SCANS; i++) {
    if (i == SETTLING) {
      all_began = cs_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
      scans_ns = 0;
      began = own_cpu();
    }
    uint64_t from = own_cpu(), due = cs_engines_poll(cs_clock_now_ns());
    scans_ns += own_cpu() - from;
    (void)drain();
    struct timespec until = cs_timespec_of(due);
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  }
  uint64_t program_ns =
      cs_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - all_began - (own_cpu() - began);
  cs_store_release(&over, true);
  for (int i = 0; i < SLEEPERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  end();
  double part = (double)scans_ns / (double)program_ns;
  (void)snprintf(why, 128, "scans take %.4f of what the program uses", part);
  return part <= 1.0 / 25;
}

static void scans_take_a_part_of_what_the_program_uses(void **state) {
  (void)state;
  measure_in_tries(scans_take_their_part);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(what_is_refused_is_told, end_failed),
      cmocka_unit_test_teardown(samples_stand_for_the_time_that_threads_have_used, end_failed),
      cmocka_unit_test_teardown(time_that_no_scan_has_met_is_made_up_for_once, end_failed),
      cmocka_unit_test_teardown(a_scan_of_one_processor_stands_for_all, end_failed),
      cmocka_unit_test_teardown(a_costly_scan_does_not_delay_the_next_one, end_failed),
      cmocka_unit_test_teardown(scans_take_a_part_of_what_the_program_uses, end_failed),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
