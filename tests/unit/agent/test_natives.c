// SPDX-License-Identifier: MIT
// How many threads never ran managed code: also those that ended before the recording did, but no
// managed thread that a scan has met before the runtime reported it, or after its end.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sampling/thread_life.h"

// The tids end with 0. In the order in which /proc may have them, which is none.
static uint32_t scan(const uint32_t *tids) {
  cs_natives_begin();
  for (; *tids != 0; tids++) assert_true(cs_natives_found(*tids));
  cs_natives_end();
  return cs_natives_count();
}

#define SCAN(...) scan((const uint32_t[]){__VA_ARGS__ __VA_OPT__(, ) 0})

static void those_that_have_ended_count(void **state) {
  (void)state;
  cs_natives_reset();
  assert_int_equal(SCAN(30, 10, 20), 3);
  assert_int_equal(SCAN(20, 40, 30, 10), 4);
  assert_int_equal(SCAN(40), 4);
  assert_int_equal(SCAN(), 4);
  assert_int_equal(SCAN(50), 5);
  cs_natives_reset();
  assert_int_equal(SCAN(50), 1);
}

static void many_count(void **state) {
  enum { MANY = 1000 };
  static uint32_t tids[MANY + 1];
  (void)state;
  cs_natives_reset();
  for (uint32_t i = 0; i < MANY; i++) tids[i] = 1 + i * 7919 % MANY;
  assert_int_equal(scan(tids), MANY);
  assert_int_equal(scan(tids), MANY);
  assert_int_equal(SCAN(5, MANY + 1), MANY + 1);
}

static void managed_threads_do_not_count(void **state) {
  (void)state;
  cs_natives_reset();
  // 10 is met once, as a managed thread whose end has been reported.
  assert_int_equal(SCAN(10, 20, 30), 3);
  assert_int_equal(SCAN(20, 30), 2);
  // 20 becomes a managed one between two scans, and ends; 30 during one that has met it already.
  cs_natives_managed(20);
  cs_natives_begin();
  assert_true(cs_natives_found(30));
  cs_natives_managed(30);
  cs_natives_end();
  assert_int_equal(cs_natives_count(), 0);
  assert_int_equal(SCAN(), 0);
  cs_natives_managed(99);
  assert_int_equal(SCAN(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(those_that_have_ended_count),
      cmocka_unit_test(many_count),
      cmocka_unit_test(managed_threads_do_not_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
