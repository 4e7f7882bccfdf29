// SPDX-License-Identifier: MIT
// What completes a fast walk, over a CLR made of data structures: methods, and which of them may be
// unloaded by the time they are resolved.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/complete.h"
#include "support/fake_clr.h"

enum { ID = 0x7000, DEATHS = 5 };

static uint8_t nops[100];
static struct fake_clr clr;

static int setup(void **state) {
  (void)state;
  memset(nops, 0x90, sizeof nops);
  fake_clr_init(&clr);
  cs_store_release(&cs_signal.world, &clr.world);
  return 0;
}
static int teardown(void **state) {
  (void)state;
  cs_store_release(&cs_signal.world, NULL);
  fake_clr_free(&clr);
  return 0;
}

static uint64_t add_method(void) {
  struct fake_function f = {nops, sizeof nops, fake_leaf_info, sizeof fake_leaf_info};
  return fake_clr_add_method(&clr, &f, 1, ID, 0);
}

// One frame as a fast walk leaves it: of managed code, and nothing else.
static struct cs_record complete_one(uint64_t ip, bool self, bool held) {
  struct cs_record record = {.kind = CS_CODE_JIT};
  struct cs_capture capture = {.records = &record,
                               .count = 1,
                               .fresh = 1,
                               .self = self,
                               .held = held,
                               .module_deaths = DEATHS};
  record.preserved[CS_PRESERVED_IP] = ip;
  cs_capture_complete(&capture);
  return record;
}

static void a_method_is_found_again(void **state) {
  (void)state;
  uint64_t start = add_method();
  for (int again = 0; again < 2; again++) {
    struct cs_record record = complete_one(start + 50, false, false);
    assert_int_equal(record.method_start, start);
    assert_int_equal(record.function_id, ID);
    assert_false(record.collectible);
    assert_false(record.may_be_gone);
    assert_false(record.resolved);  // nothing has checked the runtime's memory
  }
}

// The target runs on before its frames are resolved, unless it is the calling thread or held.
static void collectible_code_may_be_gone(void **state) {
  (void)state;
  uint64_t start =
      add_method();  // what the first test has found at this address is never forgotten
  fake_clr_set_collectible(&clr, true);
  struct cs_record record = complete_one(start + 60, false, false);
  assert_int_equal(record.method_start, start);
  assert_true(record.collectible);
  assert_true(record.may_be_gone);
  assert_int_equal(record.deaths, DEATHS);
  assert_false(complete_one(start + 60, true, false).may_be_gone);
  assert_false(complete_one(start + 60, false, true).may_be_gone);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_method_is_found_again, setup, teardown),
      cmocka_unit_test_setup_teardown(collectible_code_may_be_gone, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
