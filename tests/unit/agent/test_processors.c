// SPDX-License-Identifier: MIT
// How often a processor is chosen, where the caller then is, and what a sandbox may refuse.
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "base/random.h"
#include "engines/processors.h"
#include "support/engine_run.h"

enum { CHOICES = 4000 };

static cpu_set_t allowed(void) {
  cpu_set_t set;
  assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

// Returns the n-th processor on which the program may run, or -1.
static int processor(unsigned n) {
  cpu_set_t set = allowed();
  for (int i = 0; i < CPU_SETSIZE; i++)
    if (CPU_ISSET((unsigned)i, &set) && n-- == 0) return i;
  return -1;
}

// Returns the processor in such a file.
static int processor_in(const char *state, const char *scheduling) {
  char text[400];
  (void)snprintf(
      text, sizeof text,
      "7 (a) R (b) %s 1 7 7 0 -1 64 1 2 3 4 5 6 7 8 20 0 9 0 100 200 300 400 1 2 3 4 5 6 7 "
      "8 9 0 0 0 17 %s 0 0 0\n",
      state, scheduling);
  return cs_processor_in(text);
}

static void a_thread_that_cannot_be_preempted_has_no_processor(void **state) {
  (void)state;
  assert_int_equal(processor_in("R", "1 0 0"), 1);
  assert_int_equal(processor_in("R", "13 0 3"), 13);       // SCHED_BATCH
  assert_int_equal(processor_in("S", "1 0 0"), -1);        // asleep
  assert_int_equal(processor_in("R", "1 50 1"), -1);       // SCHED_FIFO
  assert_int_equal(processor_in("R", "1 0 6"), -1);        // SCHED_DEADLINE
  assert_int_equal(cs_processor_in("7 (a) R 1 7 7"), -1);  // cut
  char own[512] = "";
  FILE *file = fopen("/proc/thread-self/stat", "r");
  assert_non_null(file);
  size_t size = fread(own, 1, sizeof own - 1, file);
  (void)fclose(file);
  cpu_set_t set = allowed();
  assert_true(size > 0 && cs_processor_in(own) >= 0);
  assert_true(CPU_ISSET((unsigned)cs_processor_in(own), &set));
}

static void without_a_thread_found_the_caller_stays(void **state) {
  (void)state;
  cpu_set_t before = allowed(), after;
  assert_int_equal(cs_processors_begin(), CPU_COUNT(&before));
  cs_processors_add(-1, 1);
  cs_processors_add(CPU_SETSIZE, 1);
  assert_true(cs_processors_move(~0ull) == 1);
  after = allowed();
  assert_true(CPU_EQUAL(&before, &after));
  cs_processors_end();
}

// Two processors, one with three times as many threads: each choice is made with the probability
// that it returns, so their inverses count both processors.
static void choices_have_their_probability(void **state) {
  (void)state;
  int busy = processor(0), other = processor(1);
  cpu_set_t before = allowed(), after;
  double inverse[2] = {0, 0};
  uint64_t random = 4711;
  if (other < 0) fail_msg("this test needs two processors");
  (void)cs_processors_begin();
  for (int i = 0; i < CHOICES; i++) {
    cs_processors_add(busy, 3);
    cs_processors_add(other, 1);
    double probability = cs_processors_move(cs_random_next(&random));
    int at = sched_getcpu();
    assert_true(at == busy || at == other);
    if (i > 0) assert_true(fabs(probability - (at == busy ? 0.719 : 0.281)) < 0.002);
    inverse[at == other] += 1 / probability / CHOICES;
  }
  assert_true(fabs(inverse[0] - 1) < 0.06 && fabs(inverse[1] - 1) < 0.12);
  cs_processors_end();
  after = allowed();
  assert_true(CPU_EQUAL(&before, &after));
}

static void a_processor_without_threads_is_forgotten(void **state) {
  (void)state;
  int busy = processor(0), other = processor(1);
  (void)cs_processors_begin();
  cs_processors_add(other, 1);
  uint64_t random = 1;
  for (int i = 0; i < 1000; i++) {
    cs_processors_add(busy, 1);
    (void)cs_processors_move(cs_random_next(&random));
  }
  assert_true(cs_processors_move(cs_random_next(&random)) == 1);
  assert_int_equal(sched_getcpu(), busy);
  cs_processors_end();
}

// As by taskset, for all threads of the process.
static void a_change_from_outside_holds(void **state) {
  (void)state;
  int one = processor(0), other = processor(1);
  cpu_set_t before = allowed(), set, after;
  (void)cs_processors_begin();
  cs_processors_add(other, 1);
  assert_true(cs_processors_move(0) == 1);
  assert_int_equal(sched_getcpu(), other);
  CPU_ZERO(&set);
  CPU_SET((unsigned)one, &set);
  assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
  cs_processors_add(other, 1);
  assert_true(cs_processors_move(0) == 1);
  assert_int_equal(sched_getcpu(), one);
  cs_processors_end();
  after = allowed();
  assert_true(CPU_EQUAL(&set, &after));
  assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static int the_call_is_refused(void) {
  if (!refuse(SYS_sched_setaffinity)) return 1;
  (void)cs_processors_begin();
  cs_processors_add(processor(0), 1);
  return cs_processors_move(0) == 0 ? 0 : 2;
}

static void a_refusal_is_returned(void **state) {
  (void)state;
  in_child(the_call_is_refused);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_that_cannot_be_preempted_has_no_processor),
      cmocka_unit_test(without_a_thread_found_the_caller_stays),
      cmocka_unit_test(choices_have_their_probability),
      cmocka_unit_test(a_processor_without_threads_is_forgotten),
      cmocka_unit_test(a_change_from_outside_holds),
      cmocka_unit_test(a_refusal_is_returned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
