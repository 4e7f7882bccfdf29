// SPDX-License-Identifier: MIT
// Which events are walked: no more than are allowed, and those that are walked represent all
// events, however long each walk takes. Time, the program's CPU time and costs are simulated.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "sampling/budget.h"
#include "state/event_names.h"
#include "state/throttle.h"
#include "wire/consumer.h"

enum { UPDATES_A_SECOND = 10, SETTLING = 8, COUNTED = 30 };  // the last two are seconds
#define SECOND 1000000000ull
#define TICKS_A_SECOND 1000000000ull

struct stream {
  enum cs_wire_mode mode;
  uint32_t a_second;                  // events
  uint64_t (*value)(uint32_t event);  // of each event
  uint64_t ticks;                     // of the time-stamp counter, per walk
  // The results, in the seconds that count.
  double events, walked, sum, estimate;
};

static uint64_t now_ns;
static uint64_t cpu_ns;        // of the program
static double processors = 0;  // that the program uses

// In place of the C library's.
int clock_gettime(clockid_t clock, struct timespec *time) {
  if (clock != CLOCK_PROCESS_CPUTIME_ID) return (int)syscall(SYS_clock_gettime, clock, time);
  *time = cs_timespec_of(cpu_ns);
  return 0;
}

static int setup(void **state) {
  (void)state;
  cs_clock_init();
  memset(&cs_options, 0, sizeof cs_options);
  cs_options.modes = CS_WIRE_MODE_BIT(CS_WIRE_MODE_ALLOC) |
                     CS_WIRE_MODE_BIT(CS_WIRE_MODE_EXCEPTION) | CS_WIRE_MODE_BIT(CS_WIRE_MODE_WAIT);
  now_ns = SECOND;
  processors = 0;
  return 0;
}

static void update(struct stream *s, bool counts) {
  for (uint32_t i = 0; i < s->a_second / UPDATES_A_SECOND; i++) {
    uint64_t value = s->value(i), weight = 0;
    bool walked = cs_throttle_take(s->mode, value, NULL, &weight);
    if (walked) {
      cs_throttle_add_walk(s->mode);
      cs_throttle_add_cost(s->mode, s->ticks);
    }
    if (!counts) continue;
    s->events++;
    s->sum += (double)value;
    s->walked += walked ? 1 : 0;
    s->estimate += walked ? (double)weight : 0;
  }
}

static void run(struct stream *streams, unsigned count) {
  cs_throttle_start(now_ns);
  if (cs_options.budget_ppm != 0) cs_budget_start(now_ns);
  for (unsigned i = 0; i < (SETTLING + COUNTED) * UPDATES_A_SECOND; i++) {
    for (unsigned k = 0; k < count; k++) update(&streams[k], i >= SETTLING * UPDATES_A_SECOND);
    now_ns += SECOND / UPDATES_A_SECOND;
    cpu_ns += (uint64_t)(processors * (double)SECOND / UPDATES_A_SECOND);
    cs_throttle_update(now_ns);
  }
  for (unsigned k = 0; k < count; k++)
    print_message("mode %d: %.0f of %.0f walked, which stand for %.1f %%\n", (int)streams[k].mode,
                  streams[k].walked, streams[k].events, 100 * streams[k].estimate / streams[k].sum);
}

static void assert_near(double found, double want, double part) {
  if (found < want * (1 - part) || found > want * (1 + part))
    fail_msg("%g, but %g is wanted", found, want);
}

static uint64_t one(uint32_t event) {
  (void)event;
  return 1;
}
// Nine of ten waits take 20 us, the others 5 ms.
static uint64_t mixed(uint32_t event) {
  return event % 10 == 0 ? 5000000 : 20000;
}
static uint64_t object(uint32_t event) {
  return 100000 + event % 7 * 1000;
}

static void few_events_are_all_walked(void **state) {
  struct stream streams[] = {{.mode = CS_WIRE_MODE_EXCEPTION, .a_second = 50, .value = one},
                             {.mode = CS_WIRE_MODE_WAIT, .a_second = 50, .value = mixed}};
  (void)state;
  run(streams, 2);
  for (unsigned i = 0; i < 2; i++) {
    assert_true(streams[i].walked == streams[i].events);
    assert_true(streams[i].estimate == streams[i].sum);
  }
}

static void those_that_are_walked_stand_for_all(void **state) {
  struct stream streams[] = {{.mode = CS_WIRE_MODE_EXCEPTION, .a_second = 20000, .value = one},
                             {.mode = CS_WIRE_MODE_WAIT, .a_second = 20000, .value = mixed}};
  (void)state;
  run(streams, 2);
  for (unsigned i = 0; i < 2; i++) {
    assert_in_range((uint64_t)streams[i].walked, 200 * COUNTED, 600 * COUNTED);
    assert_near(streams[i].estimate, streams[i].sum, 0.1);
  }
}

// Of each of 1,000 rare types, thrown beside a type of which one of tens is walked: few are left
// after the last one that is walked.
static void the_first_of_a_type_are_walked(void **state) {
  enum { TYPES = 1000, THROWN = 200, EARLY = 64 };
  struct stream common = {.mode = CS_WIRE_MODE_EXCEPTION, .a_second = 20000, .value = one};
  uint64_t walked = 0, left = 0, weight;
  (void)state;
  run(&common, 1);
  for (unsigned i = 0; i < TYPES; i++) {
    unsigned since = 0;
    for (unsigned n = 1; n <= THROWN; n++) {
      bool taken = cs_throttle_take_one(CS_WIRE_MODE_EXCEPTION, (double)EARLY / n);
      if (n <= EARLY) assert_true(taken);
      walked += taken ? 1 : 0;
      since = taken ? 0 : since + 1;
    }
    left += since;
  }
  assert_in_range(walked, TYPES * 100, TYPES * 180);
  assert_in_range(left, 1, (uint64_t)TYPES * THROWN / 50);
  walked = 0;
  for (unsigned n = 0; n < 10000; n++)
    walked += cs_throttle_take(CS_WIRE_MODE_EXCEPTION, 1, NULL, &weight) ? 1 : 0;
  assert_in_range(walked, 1, 1000);  // the others are walked as rarely as before
}

// Returns how many are walked of so many exceptions of one type between two updates.
static unsigned walked_at_once(unsigned thrown) {
  unsigned walked = 0;
  for (unsigned n = 1; n <= thrown; n++)
    walked += cs_throttle_take_one(CS_WIRE_MODE_EXCEPTION, 64.0 / n) ? 1 : 0;
  return walked;
}

// Where a recording or a program's exceptions begin, it is not known yet how many will come. Not
// each of thousands is walked meanwhile, unless the user says so.
static void of_many_at_the_beginning_few_are_walked(void **state) {
  (void)state;
  for (unsigned updates = 0; updates <= 10; updates += 10) {
    cs_throttle_start(now_ns);
    for (unsigned i = 0; i < updates; i++) cs_throttle_update(now_ns += SECOND / UPDATES_A_SECOND);
    assert_int_equal(walked_at_once(500), 500);
    assert_in_range(walked_at_once(10000), 400, 1600);
  }
  cs_options.event_rate = 1000000;
  cs_throttle_start(now_ns);
  assert_int_equal(walked_at_once(10000), 10000);
}

// Three exceptions of one type to one of another, as the agent takes them, from a rate at which all
// are walked to one at which one of hundreds is. Their sums are exact but for what came after the
// last one that was walked; the rate is held; and of the stacks, which alternate within a type,
// each has its half.
static void exceptions_stand_for_all_of_their_type(void **state) {
  static const uint32_t rates[] = {80, 4000, 100000};
  (void)state;
  for (unsigned r = 0; r < CS_COUNT(rates); r++) {
    uint64_t thrown[4] = {0}, weights[4] = {0}, walked = 0;  // by type and stack
    uint32_t types[2] = {cs_event_name_of("Often"), cs_event_name_of("Seldom")};
    cs_throttle_start(now_ns);
    for (unsigned i = 0; i < (SETTLING + COUNTED) * UPDATES_A_SECOND; i++) {
      for (uint32_t n = 0; n < rates[r] / UPDATES_A_SECOND; n++) {
        unsigned type = n % 4 == 3, stack = n / 4 % 2;
        double least = 64.0 / (double)cs_event_name_count(types[type]);
        thrown[2 * type + stack]++;
        if (!cs_throttle_take_one(CS_WIRE_MODE_EXCEPTION, least)) continue;
        weights[2 * type + stack] += cs_event_name_take_unsampled(types[type]);
        cs_throttle_add_walk(CS_WIRE_MODE_EXCEPTION);
        walked += i >= SETTLING * UPDATES_A_SECOND;
      }
      now_ns += SECOND / UPDATES_A_SECOND;
      cs_throttle_update(now_ns);
    }
    print_message("%u a second: %.1f walked\n", rates[r], (double)walked / COUNTED);
    for (unsigned type = 0; type < 2; type++) {
      uint64_t *w = &weights[2 * type], all = thrown[2 * type] + thrown[2 * type + 1];
      assert_int_equal(w[0] + w[1] + cs_event_name_take_unsampled(types[type]), all);
      assert_near((double)w[0], (double)all / 2, 0.15);
    }
    assert_int_equal(cs_event_names_counted(), thrown[0] + thrown[1] + thrown[2] + thrown[3]);
    if (rates[r] < 500) assert_int_equal(walked, rates[r] * COUNTED);
    if (rates[r] > 500) assert_in_range(walked, 300 * COUNTED, 700 * COUNTED);
    cs_event_names_free();
  }
}

static void as_many_as_the_user_says(void **state) {
  struct stream exceptions = {.mode = CS_WIRE_MODE_EXCEPTION, .a_second = 20000, .value = one};
  (void)state;
  cs_options.event_rate = 50;
  run(&exceptions, 1);
  assert_near(exceptions.walked, 50 * COUNTED, 0.2);
  cs_options.event_rate = 1000000;
  exceptions = (struct stream){.mode = CS_WIRE_MODE_EXCEPTION, .a_second = 20000, .value = one};
  run(&exceptions, 1);
  assert_true(exceptions.walked == exceptions.events);
}

static void objects_by_their_interval(void **state) {
  struct stream objects = {.mode = CS_WIRE_MODE_ALLOC, .a_second = 20000, .value = object};
  (void)state;
  cs_options.alloc_interval = 1024000;  // the runtime reports one in 102,400 bytes
  run(&objects, 1);
  assert_near(objects.walked, objects.events / 10, 0.1);
  assert_near(objects.estimate, objects.sum, 0.1);
}

// A large object among many small ones has its own bytes, or is chosen by them: in each second,
// forty of 16 MB and 10,000 of which each stands for 100 KiB. Their parts of all bytes are right,
// though one in a hundred is walked.
static uint64_t seldom_large(uint32_t event) {
  return event % 250 == 0 ? 16777216 : 102400;
}
static void large_objects_are_chosen_by_their_bytes(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    double large = 0, all = 0;
    cs_throttle_start(now_ns);
    for (unsigned i = 0; i < 4 * UPDATES_A_SECOND; i++) {
      for (uint32_t n = 0; n < 10000 / UPDATES_A_SECOND; n++) {
        uint64_t value = seldom_large(n), weight;
        if (!cs_throttle_take(CS_WIRE_MODE_ALLOC, value, cs_type_sum_of(value), &weight)) continue;
        cs_throttle_add_walk(CS_WIRE_MODE_ALLOC);
        cs_throttle_add_cost(CS_WIRE_MODE_ALLOC, TICKS_A_SECOND / 50000);
        if (i < 2 * UPDATES_A_SECOND) continue;
        large += value > 102400 ? (double)weight : 0;
        all += (double)weight;
      }
      now_ns += SECOND / UPDATES_A_SECOND;
      cs_throttle_update(now_ns);
    }
    double truth = 40 * 16777216.0 / (40 * 16777216.0 + 9960 * 102400.0);
    assert_near(large / all, truth, 0.12);
  }
}

// About a hundred are walked even in a program that does nothing; otherwise as many as take 0.5 %
// of its CPU time.
static void what_walks_cost_bounds_them(void **state) {
  struct stream objects = {.mode = CS_WIRE_MODE_ALLOC,
                           .a_second = 20000,
                           .value = object,
                           .ticks = TICKS_A_SECOND / 50000};
  (void)state;
  run(&objects, 1);
  assert_near(objects.walked, 100 * COUNTED, 0.2);
  assert_near(objects.estimate, objects.sum, 0.15);
  processors = 3;
  objects.walked = objects.events = objects.estimate = objects.sum = 0;
  run(&objects, 1);
  double each = (double)cs_clock_ticks_to_ns(objects.ticks);
  assert_near(objects.walked * each, 0.005 * processors * COUNTED * (double)SECOND, 0.2);
  assert_near(objects.estimate, objects.sum, 0.15);
}

// Each exception costs the runtime an event of some 400 ns, walked or not. That is part of the
// mode's 0.5 %, so the more are thrown, the fewer are walked, down to a hundred.
static void what_counting_costs_leaves_fewer_walks(void **state) {
  static const uint32_t rates[] = {1000, 6000, 9000, 40000};
  (void)state;
  processors = 1;
  for (unsigned i = 0; i < CS_COUNT(rates); i++) {
    struct stream exceptions = {.mode = CS_WIRE_MODE_EXCEPTION,
                                .a_second = rates[i],
                                .value = one,
                                .ticks = TICKS_A_SECOND / 25000};
    run(&exceptions, 1);
    double each = (double)cs_clock_ticks_to_ns(exceptions.ticks);
    double left = (0.005 * processors * (double)SECOND - 400.0 * rates[i]) / each;
    assert_near(exceptions.walked, (left > 100 ? left : 100) * COUNTED, 0.2);
    assert_near(exceptions.estimate, exceptions.sum, 0.15);
  }
}

// Each mode has its share of the budget; what one mode does not need goes to the other.
static void the_budget_is_held_over_all_modes(void **state) {
  struct cs_consumer consumer;
  struct cs_error err;
  struct cs_consumer_opts opts = {.capacity = 65536, .hz = 999, .max_depth = 512};
  struct stream streams[] = {
      {.mode = CS_WIRE_MODE_EXCEPTION,
       .a_second = 20000,
       .value = one,
       .ticks = TICKS_A_SECOND / 50000},
      {.mode = CS_WIRE_MODE_WAIT, .a_second = 20, .value = mixed, .ticks = TICKS_A_SECOND / 50000}};
  (void)state;
  assert_true(cs_consumer_create(&consumer, &opts, &err));
  assert_true(cs_producer_open(&cs_agent.wire, consumer.path, &err));
  assert_true(cs_producer_claim(&cs_agent.wire));
  cs_options.hz = 999;
  cs_options.budget_ppm = 3000;  // a tenth of a second in 30
  cs_options.event_rate = 10000;
  run(streams, 2);
  double each = (double)cs_clock_ticks_to_ns(streams[0].ticks), used = 0;
  for (unsigned i = 0; i < 2; i++) used += streams[i].walked * each;
  assert_true(used < 0.003 * 1.2 * COUNTED * (double)SECOND);
  assert_true(streams[0].walked > streams[1].walked);
  assert_true(streams[1].walked == streams[1].events);
  assert_near(streams[0].estimate, streams[0].sum, 0.15);
  cs_producer_close(&cs_agent.wire);
  cs_consumer_destroy(&consumer);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(few_events_are_all_walked),
      TEST(those_that_are_walked_stand_for_all),
      TEST(the_first_of_a_type_are_walked),
      TEST(of_many_at_the_beginning_few_are_walked),
      TEST(exceptions_stand_for_all_of_their_type),
      TEST(as_many_as_the_user_says),
      TEST(objects_by_their_interval),
      TEST(large_objects_are_chosen_by_their_bytes),
      TEST(what_walks_cost_bounds_them),
      TEST(what_counting_costs_leaves_fewer_walks),
      TEST(the_budget_is_held_over_all_modes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
