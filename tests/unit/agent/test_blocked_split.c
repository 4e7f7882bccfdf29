// SPDX-License-Identifier: MIT
// Which part of a late sample counts as time with signals blocked.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "sampling/blocked.h"
#include "sampling/weight.h"
#include "support/engine_run.h"

static struct cs_thread entry;
static struct cs_agent_thread thread;

static uint64_t since_start(void) {
  return cs_since_start(cs_clock_now_ns());
}

static void find_blocked(uint64_t ns_ago) {
  thread.blocked_before_ns = thread.blocked_ns;
  thread.blocked_ns = cs_clock_now_ns() - ns_ago;
  thread.to_unblock = true;
}

static void a_sample_is_split_only_if_its_thread_was_seen_to_block(void **state) {
  (void)state;
  const uint64_t period = 1000000000u / 499, late = 20 * MS;
  begin(499, CS_WIRE_ENGINE_CLOCK);
  thread = (struct cs_agent_thread){.thread = &entry, .tid = own_tid(), .announced = 1};
  cs_blocked_start();
  assert_int_equal(cs_blocked_split(&thread, late, since_start()), late);
  // Only the first sample after the scan has to do with it; one before it has not.
  find_blocked(0);
  assert_int_equal(cs_blocked_split(&thread, late, since_start() - 100 * MS), late);
  assert_int_equal(cs_blocked_split(&thread, late, since_start()), period);
  assert_int_equal(cs_blocked_split(&thread, late, since_start()), late);
  // One that is in time is whole, and later ones are, too.
  find_blocked(0);
  assert_int_equal(cs_blocked_split(&thread, period, since_start()), period);
  // Found twice within a second: each late sample.
  assert_int_equal(cs_blocked_split(&thread, late, since_start()), period);
  // Found again after a long time: the first one only.
  thread.blocked_ns -= 2000 * MS;
  find_blocked(0);
  assert_int_equal(cs_blocked_split(&thread, late, since_start()), period);
  assert_int_equal(cs_blocked_split(&thread, late, since_start()), late);
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(a_sample_is_split_only_if_its_thread_was_seen_to_block, end_failed),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
