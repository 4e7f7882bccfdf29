// SPDX-License-Identifier: MIT
// The list of files that gave no names: own ones first, none cut off, and the number of the rest.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "naming/missing.h"

static void some_and_the_number_of_the_rest(void **state) {
  (void)state;
  char text[200] = "";
  struct cs_missing list = {.text = text, .size = sizeof text};
  cs_missing_end(&list);
  assert_string_equal(text, "");
  for (int i = 0; i < 41; i++) cs_missing_add(&list, "/d/System.Linq.dll", "no portable PDB", true);
  cs_missing_add(&list, "/app/Shop.dll", "no portable PDB", false);
  cs_missing_add(&list, "/app/Cart.dll", "its PDB is of another build", false);
  cs_missing_end(&list);
  assert_string_equal(text,
                      "Shop.dll (no portable PDB), Cart.dll (its PDB is of another build), 41 of "
                      "the framework's");
}

static void no_name_is_cut_off(void **state) {
  (void)state;
  char text[200] = "", path[150];
  struct cs_missing list = {.text = text, .size = sizeof text};
  memset(path, 'x', sizeof path - 1);
  path[sizeof path - 1] = '\0';
  cs_missing_add(&list, path, "why", false);
  for (int i = 0; i < 9; i++) {
    (void)snprintf(path, sizeof path, "/app/%d.so", i);
    cs_missing_add(&list, path, "why", false);
  }
  cs_missing_end(&list);
  assert_string_equal(text, "0.so (why), 1.so (why), 2.so (why), 3.so (why), 6 more");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(some_and_the_number_of_the_rest),
      cmocka_unit_test(no_name_is_cut_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
