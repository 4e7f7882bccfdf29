// SPDX-License-Identifier: MIT
// What is waited for, by the methods that lead to the wait: however many of them a program has.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "reporting/wait_names.h"

static void note_in(const char *space, uint32_t id, const char *type, const char *method) {
  static struct cs_method_name name;
  (void)snprintf(name.space, sizeof name.space, "%s", space);
  (void)snprintf(name.type, sizeof name.type, "%s", type);
  (void)snprintf(name.method, sizeof name.method, "%s", method);
  assert_true(cs_wait_name_note(id, &name));
}

static void note(uint32_t id, const char *type, const char *method) {
  note_in("System.Threading", id, type, method);
}

static void is_named(uint32_t id, const char *expected) {
  const char *name = NULL;
  assert_true(cs_wait_name_of(id, &name));
  assert_string_equal(name, expected);
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
  is_named(1, "Monitor.Wait");
  is_named(2, "Monitor.Enter");
  is_named(3, "Lock");
  assert_false(cs_wait_name_of(4, &name));
  cs_wait_names_free();
}

static void a_handle_is_named_by_its_method(void **state) {
  const char *name = NULL;
  (void)state;
  note(1, "WaitHandle", "WaitOneNoCheck");
  note(2, "WaitHandle", "WaitAll");
  note(3, "WaitHandle", "WaitAny");
  note(4, "WaitHandle", "WaitMultiple");
  note(5, "Thread", "Join");
  note_in("System.Diagnostics", 6, "Process", "WaitForExitCore");
  note_in("System.Diagnostics", 7, "ProcessWaitState", "WaitForExit");
  note_in("System.Diagnostics", 8, "Process", "Start");
  note_in("Shop", 9, "WaitHandle", "WaitOne");
  is_named(1, "WaitHandle.WaitOne");
  is_named(2, "WaitHandle.WaitAll");
  is_named(3, "WaitHandle.WaitAny");
  is_named(4, "WaitHandle.WaitAny or WaitAll");
  is_named(5, "Thread.Join");
  is_named(6, "Process.WaitForExit");
  is_named(7, "Process.WaitForExit");
  assert_false(cs_wait_name_of(8, &name));
  assert_false(cs_wait_name_of(9, &name));
  cs_wait_names_free();
}

// As where Monitor.Wait was inlined into SemaphoreSlim.Wait, or into the program's own code.
static void a_stub_at_the_leaf_is_part_of_the_wait(void **state) {
  static const struct cs_method_name stub = {.kind = CS_NAME_STUB, .method = "[IL stub] PInvoke"};
  const char *name = NULL;
  (void)state;
  assert_true(cs_wait_name_note(1, &stub));
  note(2, "SemaphoreSlim", "WaitCore");
  assert_true(cs_wait_name_of(1, &name));
  assert_null(name);
  assert_true(cs_wait_name_of(2, &name));
  assert_string_equal(name, "SemaphoreSlim");
  assert_false(cs_wait_name_of(1, &name));  // it calls something else
  assert_string_equal(name, "SemaphoreSlim");
  cs_wait_names_free();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(none_is_forgotten),
                                     cmocka_unit_test(names_say_what_is_waited_for),
                                     cmocka_unit_test(a_handle_is_named_by_its_method),
                                     cmocka_unit_test(a_stub_at_the_leaf_is_part_of_the_wait)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
