// SPDX-License-Identifier: MIT
// The names of what events are about: each has one number, and the table does not grow for ever in
// a program that keeps making types.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <uchar.h>

#include <cmocka.h>

#include "state/event_names.h"

static uint32_t number_of(unsigned type) {
  char name[32];
  (void)snprintf(name, sizeof name, "Shop.Type%u", type);
  return cs_event_name_of(name);
}

static void not_all_names_are_kept(void **state) {
  enum { MADE = 200000, KEPT = 65535 };
  (void)state;
  for (unsigned i = 0; i < MADE; i++) {
    uint32_t want = i < KEPT ? i + 1 : KEPT + 1;
    if (number_of(i) != want) fail_msg("type %u is not number %u", i, want);
  }
  for (unsigned i = 0; i < KEPT; i += 97) assert_int_equal(number_of(i), i + 1);
  assert_int_equal(cs_event_name_of("[types beyond the first 65,535]"), KEPT + 1);
  cs_event_names_free();
  assert_int_equal(number_of(3), 1);
  cs_event_names_free();
}

// A thread keeps the last name that it was given; a new recording starts without one.
static void a_name_as_the_runtime_has_it_is_the_same_names(void **state) {
  static const char16_t small[] = u"Shop.Small", large[] = u"Shop.Large", longer[] = u"Shop.SmallX";
  (void)state;
  for (int recording = 0; recording < 2; recording++) {
    for (int again = 0; again < 2; again++) {
      assert_int_equal(cs_event_name_of_utf16((const uint8_t *)small, sizeof small - 2), 1);
      assert_int_equal(cs_event_name_of_utf16((const uint8_t *)small, sizeof small - 2), 1);
      assert_int_equal(cs_event_name_of_utf16((const uint8_t *)large, sizeof large - 2), 2);
      assert_int_equal(cs_event_name_of_utf16((const uint8_t *)longer, sizeof longer - 2), 3);
      assert_int_equal(cs_event_name_of_utf16((const uint8_t *)longer, sizeof small - 2), 1);
      assert_int_equal(cs_event_name_of("Shop.Large"), 2);
    }
    cs_event_names_free();
    assert_int_equal(cs_event_name_of_utf16((const uint8_t *)longer, sizeof small - 2), 1);
    cs_event_names_free();
    assert_int_equal(cs_event_name_of_utf16((const uint8_t *)small, sizeof small - 2), 1);
    cs_event_names_free();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(not_all_names_are_kept),
      cmocka_unit_test(a_name_as_the_runtime_has_it_is_the_same_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
