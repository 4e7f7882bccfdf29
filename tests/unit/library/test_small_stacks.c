// SPDX-License-Identifier: MIT
// No signal may be sent while there is a library that has not been examined, nor once there is one
// with Go's mark, in whichever way it has come.
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "life/images.h"
#include "life/small_stacks.h"
#include "signal/signal.h"

static void *load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library);
  return library;
}

// The table of images is not made again: only the loader's list is looked at.
static void libraries_that_come_and_go_are_examined(void **state) {
  (void)state;
  assert_true(cs_library_images_init());
  assert_true(cs_signals_are_safe());
  for (int i = 0; i < 100; i++) {
    void *first = load(PLAIN_0), *second = load(PLAIN_1);
    assert_true(cs_signals_are_safe());
    assert_int_equal(dlclose(first), 0);
    if (i % 2 == 0) assert_true(cs_signals_are_safe());
    assert_int_equal(dlclose(second), 0);
    if (i % 3 == 0) assert_true(cs_signals_are_safe());
  }
}

// The loader's list has one namespace only, the table of images has all.
static void another_namespace_needs_the_table(void **state) {
  (void)state;
  assert_true(cs_signals_are_safe());
  void *library = dlmopen(LM_ID_NEWLM, PLAIN_2, RTLD_NOW);
  assert_non_null(library);
  assert_false(cs_signals_are_safe());
  (void)cs_library_refresh_images();
  assert_true(cs_signals_are_safe());
  void *other = load(PLAIN_0);
  assert_true(cs_signals_are_safe());
  assert_int_equal(dlclose(other), 0);
  assert_true(cs_signals_are_safe());
}

// Stays true from then on, so this is the last one.
static void a_marked_library_is_found_in_the_place_of_another(void **state) {
  (void)state;
  assert_true(cs_signals_are_safe());
  void *before = load(PLAIN_0);
  assert_true(cs_signals_are_safe());
  assert_int_equal(dlclose(before), 0);
  (void)load(MARKED);
  assert_false(cs_signals_are_safe());
  assert_int_equal(cs_load_acquire(&cs_signal.small_stacks), 1);
  assert_non_null(strstr(cs_small_stacks_reason(), "test_marked"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(libraries_that_come_and_go_are_examined),
      cmocka_unit_test(another_namespace_needs_the_table),
      cmocka_unit_test(a_marked_library_is_found_in_the_place_of_another),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
