// SPDX-License-Identifier: MIT
// The table of methods that have been named: each has one id while it lives, and the table does not
// grow for ever in a program that keeps making collectible code.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "life/library.h"
#include "reporting/methods.h"
#include "state/state.h"
#include "wire/consumer.h"

static struct cs_consumer consumer;

// A runtime in which every call fails, so methods have no names.
static HRESULT refuse(void *self) {
  (void)self;
  return (HRESULT)0x80004005;  // E_FAIL
}

static int set_up(void **state) {
  static ICorProfilerInfo15Vtbl table;
  static ICorProfilerInfo15 info = {&table};
  struct cs_error err;
  struct cs_consumer_opts opts = {.capacity = 1 << 20, .hz = 997, .max_depth = 512};
  HRESULT (**entries)(void *) = (HRESULT(**)(void *))(void *)&table;
  (void)state;
  for (size_t i = 0; i < sizeof table / sizeof *entries; i++) entries[i] = refuse;
  cs_agent.info = &info;
  if (!cs_consumer_create(&consumer, &opts, &err)) return -1;
  return cs_producer_open(&cs_agent.wire, consumer.path, &err) && cs_producer_claim(&cs_agent.wire)
             ? 0
             : -1;
}

static int tear_down(void **state) {
  (void)state;
  cs_function_ids_free();
  cs_producer_close(&cs_agent.wire);
  cs_consumer_destroy(&consumer);
  return 0;
}

static uint32_t id_of(uint64_t start, bool collectible) {
  uint32_t id = 0, now = cs_library.world.code_generation;
  struct cs_method_at method = {start, start + 8, collectible, now};
  while (cs_consumer_next(&consumer) != NULL) {
  }
  assert_true(cs_method_at_to_wire(&method, &id));
  return id;
}

static void a_method_has_one_id(void **state) {
  (void)state;
  uint32_t stays = id_of(0x1000, false), goes = id_of(0x2000, true);
  assert_int_not_equal(stays, goes);
  assert_int_equal(id_of(0x1000, false), stays);
  assert_int_equal(id_of(0x2000, true), goes);
  cs_library.world.code_generation++;  // the code was unloaded; other code may be there
  assert_int_equal(id_of(0x1000, false), stays);
  assert_int_not_equal(id_of(0x2000, true), goes);
}

// Each method has an address of its own: it may be long before the runtime reuses one.
static void code_that_dies_does_not_pile_up(void **state) {
  (void)state;
  enum { LIVING = 3000, DYING = 200000 };
  static uint32_t ids[LIVING];
  for (uint32_t i = 0; i < LIVING; i++) ids[i] = id_of(0x100000 + 64ull * i, false);
  size_t before = cs_function_table_bytes();
  for (uint32_t i = 0; i < DYING; i++) {
    uint64_t start = 0x10000000 + 64ull * i;
    uint32_t id = id_of(start, true);
    if (i % 1000 == 0) assert_int_equal(id_of(start, true), id);
    cs_library.world.code_generation++;
  }
  assert_true(cs_function_table_bytes() <= 2 * before);
  for (uint32_t i = 0; i < LIVING; i++)
    assert_int_equal(id_of(0x100000 + 64ull * i, false), ids[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_method_has_one_id, set_up, tear_down),
      cmocka_unit_test_setup_teardown(code_that_dies_does_not_pile_up, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
