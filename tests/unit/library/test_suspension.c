// SPDX-License-Identifier: MIT
// Threads that hold up a suspension of the runtime: which of them take a sample, and what the
// samples stand for. Several threads account for the same suspension.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "signal/sample.h"
#include "state/ring.h"
#include "support/fake_clr.h"

enum { MODE = 5, TYPE = 9, THREADS = 4, ROUNDS = 20000, TIMES = 3 };

static struct fake_clr clr;
static struct cs_sample_ring ring;
static struct cs_suspension *const suspension = &cs_signal.suspension;

static int setup(void **state) {
  (void)state;
  fake_clr_init(&clr);
  cs_clock_init();
  cs_signal.world = &clr.world;
  cs_signal.ns_of_tick = cs_clock_ticks_to_ns(1ull << 32);
  cs_signal.ticks_of_ns = (uint64_t)(((unsigned __int128)1 << 64) / cs_signal.ns_of_tick);
  assert_true(cs_sample_ring_open(&ring, 1 << 20, 1000));
  cs_store_release(&cs_signal.ring, &ring);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  cs_signal.ring = NULL;
  cs_signal.world = NULL;
  cs_signal.ns_of_tick = cs_signal.ticks_of_ns = 0;
  memset(suspension, 0, sizeof *suspension);
  cs_sample_ring_close(&ring);
  fake_clr_free(&clr);
  return 0;
}

static void begin(uint64_t tsc) {
  *suspension = (struct cs_suspension){
      .begun = tsc, .accounted = tsc, .weight = (uint64_t)TIMES << 32, .mode = MODE};
}

static uint32_t *mode_word(uint64_t clr_thread) {
  return (uint32_t *)(uintptr_t)(clr_thread + clr.world.layout.thread.preemptive_gc_disabled);
}

static void become(struct cs_thread *thread) {
  static int agent;
  memset(thread, 0, sizeof *thread);
  thread->tid = (uint32_t)syscall(SYS_gettid);
  thread->sampling = 1;
  thread->agent = &agent;
  thread->clr_thread = (uint64_t)(uintptr_t)fake_clr_alloc(&clr, 512);
  thread->asked_type = TYPE;
  *mode_word(thread->clr_thread) = 1;
}

// What its handler does. Returns what its sample stands for; 0: it has taken none.
static uint64_t hold_up(struct cs_thread *thread, uint64_t tsc) {
  struct cs_regs regs = {.known = CS_REGS_ALL};
  struct cs_signal_cause cause = {tsc, CS_CAUSE_STRAGGLER, 0, NULL};
  cs_sample_take(thread, &regs, &cause);
  const struct cs_sample *s = cs_sample_ring_peek(&ring);
  if (s == NULL) return 0;
  uint64_t weight = s->weight;
  assert_int_equal(s->mode, MODE);
  assert_int_equal(s->type, TYPE);
  assert_int_equal(s->cause, CS_CAUSE_STRAGGLER);
  assert_true(weight > 0);
  cs_sample_ring_pop(&ring, s);
  thread->cooldown = (struct cs_cooldown){0};
  return weight;
}

static void a_sample_stands_for_the_time_since_the_last_one(void **state) {
  (void)state;
  struct cs_thread thread;
  uint64_t tsc = cs_tsc(), ms = cs_scale(1000000, cs_signal.ticks_of_ns);
  become(&thread);
  begin(tsc);
  assert_in_range(hold_up(&thread, tsc + 5 * ms), TIMES * 4999000, TIMES * 5001000);
  assert_in_range(hold_up(&thread, tsc + 7 * ms), TIMES * 1999000, TIMES * 2001000);
  assert_int_equal(hold_up(&thread, tsc + 6 * ms), 0);  // another thread's came first
  assert_int_equal(suspension->accounted, tsc + 7 * ms);
  assert_true(suspension->held_ns > 0);
}

static void only_a_thread_that_is_waited_for_takes_one(void **state) {
  (void)state;
  struct cs_thread thread;
  uint64_t tsc = cs_tsc();
  become(&thread);
  assert_int_equal(hold_up(&thread, tsc + 1000000), 0);  // there is no suspension
  begin(tsc);
  *mode_word(thread.clr_thread) = 0;
  assert_int_equal(hold_up(&thread, tsc + 1000000), 0);  // it has reached its safe point
  *mode_word(thread.clr_thread) = 1;
  suspension->suspender = thread.tid;
  assert_int_equal(hold_up(&thread, tsc + 1000000), 0);  // it suspends the others
  suspension->suspender = 0;
  thread.cooldown.until = tsc + 2000000;
  assert_int_equal(hold_up(&thread, tsc + 1000000), 0);  // it has spent its share of time
  assert_int_equal(suspension->accounted, tsc);
  assert_int_equal(ring.signals, 0);
  thread.cooldown.until = 0;
  assert_true(hold_up(&thread, tsc + 1000000) > 0);
  assert_int_equal(ring.signals, 1);
}

static void *account(void *sum) {
  uint64_t own = 0;
  for (int i = 0; i < ROUNDS; i++) own += cs_suspension_account(suspension, cs_tsc(), 1ull << 32);
  cs_add_seq((uint64_t *)sum, own);
  return NULL;
}

static void each_moment_is_accounted_for_once(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  uint64_t sum = 0, tsc = cs_tsc();
  begin(tsc);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, account, &sum), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_true(suspension->accounted > tsc);
  assert_int_equal(sum, TIMES * (suspension->accounted - tsc));
  assert_int_equal(sum, suspension->weights);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_sample_stands_for_the_time_since_the_last_one, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(only_a_thread_that_is_waited_for_takes_one, setup, teardown),
      cmocka_unit_test_setup_teardown(each_moment_is_accounted_for_once, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
