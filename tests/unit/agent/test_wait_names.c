// SPDX-License-Identifier: MIT
// What is waited for, by the methods that lead to the wait: however many of them a program has.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "reporting/wait_names.h"

static void note(uint32_t id, const char *type, const char *method) {
  static struct cs_method_name name;
  (void)snprintf(name.space, sizeof name.space, "System.Threading");
  (void)snprintf(name.type, sizeof name.type, "%s", type);
  (void)snprintf(name.method, sizeof name.method, "%s", method);
  assert_true(cs_wait_name_note(id, &name));
}

static void none_is_forgotten(void **state) {
  char type[32];
  const char *name = NULL;
  (void)state;
  assert_false(cs_wait_name_of(1, &name));
  for (uint32_t id = 1; id < 5000; id += 2) {
    (void)snprintf(type, sizeof type, "Type%u", id);
    note(id, type, "Wait");
  }
  for (uint32_t id = 1; id < 5000; id += 2) {
    (void)snprintf(type, sizeof type, "Type%u", id);
    assert_true(cs_wait_name_of(id, &name));
    assert_string_equal(name, type);
    assert_false(cs_wait_name_of(id + 1, &name));
  }
  cs_wait_names_free();
  assert_false(cs_wait_name_of(1, &name));
}

static void names_say_what_is_waited_for(void **state) {
  const char *name = NULL;
  (void)state;
  note(1, "Monitor", "Wait");
  note(2, "Monitor", "Enter");
  note(3, "Lock<T>", "Enter");
  note(4, "ExecutionContext", "RunInternal");
  assert_true(cs_wait_name_of(1, &name));
  assert_string_equal(name, "Monitor.Wait");
  assert_true(cs_wait_name_of(2, &name));
  assert_string_equal(name, "Monitor.Enter");
  assert_true(cs_wait_name_of(3, &name));
  assert_string_equal(name, "Lock");
  assert_false(cs_wait_name_of(4, &name));
  cs_wait_names_free();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(none_is_forgotten),
                                     cmocka_unit_test(names_say_what_is_waited_for)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
