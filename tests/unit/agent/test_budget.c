// SPDX-License-Identifier: MIT
// Under a budget, the rates fall while recording costs more than is allowed, and even the lowest
// ones are not in step with a program whose behaviour recurs every second.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sampling/budget.h"
#include "state/state.h"
#include "wire/consumer.h"

#define SECOND 1000000000ull

// Returns the least distance between the phases, within a second, of samples at this period,
// relative to the distance of evenly spread ones.
static double least_gap(uint64_t period_ns, unsigned samples) {
  double least = 1;
  for (unsigned i = 1; i < samples; i++) {
    double phase = (double)(period_ns * i % SECOND) / (double)SECOND;
    double gap = phase < 0.5 ? phase : 1 - phase;
    if (gap < least) least = gap;
  }
  return least * samples;
}

static void few_samples_are_not_in_step(void **state) {
  struct cs_consumer consumer;
  struct cs_error err;
  struct cs_consumer_opts opts = {.capacity = 65536, .hz = 999, .max_depth = 512};
  (void)state;
  assert_true(cs_consumer_create(&consumer, &opts, &err));
  assert_true(cs_producer_open(&cs_agent.wire, consumer.path, &err));
  assert_true(cs_producer_claim(&cs_agent.wire));
  cs_options.hz = 999;
  cs_options.budget_ppm = 1;
  cs_agent.period_ns = SECOND / cs_options.hz;
  uint64_t now = 0, last = 0;
  cs_budget_start(now);
  for (int turn = 0; turn < 60; turn++) {
    now += SECOND;
    cs_agent.wire.header->command_cpu_ns += SECOND / 100;  // far more than is allowed
    cs_budget_update(now);
    last = cs_agent.period_ns;
  }
  assert_true(last >= SECOND && last < SECOND * 11 / 10);
  assert_true(least_gap(last, 40) > 0.1);
  assert_true(least_gap(SECOND, 40) < 0.1);  // in step
  cs_producer_close(&cs_agent.wire);
  cs_consumer_destroy(&consumer);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(few_samples_are_not_in_step)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
