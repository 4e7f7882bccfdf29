// SPDX-License-Identifier: MIT
// The names of what events are about: each has one number, and the table does not grow for ever in
// a program that keeps making types.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
      assert_int_equal(cs_event_name_of_utf16((const uint8_t *)small, sizeof small - 2, 0), 1);
      assert_int_equal(cs_event_name_of_utf16((const uint8_t *)small, sizeof small - 2, 0), 1);
      assert_int_equal(cs_event_name_of_utf16((const uint8_t *)large, sizeof large - 2, 0), 2);
      assert_int_equal(cs_event_name_of_utf16((const uint8_t *)longer, sizeof longer - 2, 0), 3);
      assert_int_equal(cs_event_name_of_utf16((const uint8_t *)longer, sizeof small - 2, 0), 1);
      assert_int_equal(cs_event_name_of("Shop.Large"), 2);
    }
    cs_event_names_free();
    assert_int_equal(cs_event_name_of_utf16((const uint8_t *)longer, sizeof small - 2, 0), 1);
    cs_event_names_free();
    assert_int_equal(cs_event_name_of_utf16((const uint8_t *)small, sizeof small - 2, 0), 1);
    cs_event_names_free();
  }
}

static void a_name_that_is_cut_is_not_taken_for_another(void **state) {
  enum { LONG = 5000 };
  static char16_t name[LONG];
  char text[2][CS_EVENT_NAME_BYTES];
  (void)state;
  for (int i = 0; i < LONG; i++) name[i] = u'N';
  for (int i = 0; i < 2; i++) {
    name[LONG - 1] = i == 0 ? u'a' : u'b';
    cs_event_name_copy(cs_event_name_of_utf16((const uint8_t *)name, sizeof name, 0), text[i]);
    assert_int_equal(strlen(text[i]), CS_EVENT_NAME_BYTES - 1);
    assert_ptr_equal(strstr(text[i], "…~"), text[i] + CS_EVENT_NAME_BYTES - 1 - 10);
  }
  assert_string_not_equal(text[0], text[1]);
  assert_memory_equal(text[0], text[1], CS_EVENT_NAME_BYTES - 1 - 10);
  cs_event_names_free();
}

// An Activity's name, or a route, is UTF-8, and has any length.
static void a_plain_name_is_cut_too(void **state) {
  enum { LONG = 5000 };
  static char name[LONG];
  char text[2][CS_EVENT_NAME_BYTES];
  (void)state;
  for (size_t bytes = CS_EVENT_NAME_BYTES - 2; bytes < LONG; bytes += bytes < 1100 ? 1 : 100) {
    memset(name, 'N', bytes);
    name[bytes] = '\0';
    for (int i = 0; i < 2; i++) {
      name[bytes - 1] = i == 0 ? 'a' : 'b';
      cs_event_name_copy(cs_event_name_of(name), text[i]);
      assert_in_range(strlen(text[i]), CS_EVENT_NAME_BYTES - 2, CS_EVENT_NAME_BYTES - 1);
    }
    assert_string_not_equal(text[0], text[1]);
    assert_int_equal(strstr(text[0], "…~") == NULL, bytes < CS_EVENT_NAME_BYTES);
  }
  cs_event_names_free();
}

// The text is looked at up to its NUL only, and not beyond what there is.
static void the_last_name_is_recognised_in_an_event(void **state) {
  static const char16_t event[] = u"Shop.Small\0a message", longer[] = u"Shop.SmallX",
                        shorter[] = u"Shop.Smal";
  enum { BYTES = 2 * 10 };
  const uint8_t *at = (const uint8_t *)event;
  size_t bytes = 7;
  (void)state;
  assert_int_equal(cs_event_name_again(at, sizeof event, 0, &bytes), 0);
  assert_int_equal(cs_event_name_of_utf16(at, BYTES, 0), 1);
  assert_int_equal(cs_event_name_again((const uint8_t *)longer, sizeof longer, 0, &bytes), 0);
  assert_int_equal(cs_event_name_again((const uint8_t *)shorter, sizeof shorter, 0, &bytes), 0);
  assert_int_equal(cs_event_name_again(at, BYTES + 1, 0, &bytes), 0);
  assert_int_equal(bytes, 7);
  assert_int_equal(cs_event_name_again(at, BYTES + 2, 0, &bytes), 1);
  assert_int_equal(bytes, BYTES);
  cs_event_names_free();
  assert_int_equal(cs_event_name_again(at, sizeof event, 0, &bytes), 0);
}

static void each_event_is_counted_once(void **state) {
  (void)state;
  uint32_t often = cs_event_name_of("Shop.Often"), once = cs_event_name_of("Shop.Once");
  for (uint64_t i = 1; i <= 5; i++) assert_int_equal(cs_event_name_count(often), i);
  assert_int_equal(cs_event_name_count(once), 1);
  assert_int_equal(cs_event_name_take_unsampled(often), 5);
  assert_int_equal(cs_event_name_take_unsampled(often), 0);
  assert_int_equal(cs_event_name_count(often), 6);
  cs_event_name_return(often, 5);  // the sample was not made
  assert_int_equal(cs_event_name_count(often), 7);
  assert_int_equal(cs_event_names_counted(), 8);
  assert_int_equal(cs_event_name_take_unsampled(often), 7);
  assert_int_equal(cs_event_names_counted(), 8);
  cs_event_names_free();
  assert_int_equal(cs_event_names_counted(), 0);
}

static uint32_t of_class(const char16_t *name, size_t bytes, uint64_t class) {
  return cs_event_name_of_utf16((const uint8_t *)name, bytes - 2, class);
}

// Nested types of one name are counted each for itself.
static void types_of_one_name_are_told_apart_by_their_class(void **state) {
  static const char16_t name[] = u"Item";
  char text[CS_EVENT_NAME_BYTES];
  size_t bytes;
  (void)state;
  uint32_t first = of_class(name, sizeof name, 0x1000),
           second = of_class(name, sizeof name, 0x2000);
  assert_int_not_equal(first, second);
  assert_int_equal(cs_event_name_again((const uint8_t *)name, sizeof name, 0x1000, &bytes), 0);
  assert_int_equal(cs_event_name_again((const uint8_t *)name, sizeof name, 0x2000, &bytes), second);
  assert_int_equal(of_class(name, sizeof name, 0x1000), first);
  assert_int_equal(cs_event_name_count(first), 1);
  assert_int_equal(cs_event_name_count(second), 1);
  cs_event_name_copy(second, text);
  assert_string_equal(text, "Item");
  uint32_t plain = cs_event_name_plain(first);
  assert_int_not_equal(plain, first);
  assert_int_equal(cs_event_name_plain(second), plain);
  assert_int_equal(cs_event_name_plain(plain), plain);
  assert_int_equal(cs_event_name_of("Item"), plain);
  cs_event_names_free();
}

// A program that keeps loading a type again does not use up the numbers of other types.
static void classes_have_half_of_the_numbers(void **state) {
  static const char16_t name[] = u"Item";
  enum { MADE = 100000, HALF = 32768 };
  (void)state;
  for (uint64_t i = 1; i <= MADE; i++) {
    uint32_t want = i <= HALF ? (uint32_t)i : HALF + 1;
    if (of_class(name, sizeof name, i * 64) != want) fail_msg("class %lu", (unsigned long)i);
  }
  assert_int_equal(of_class(name, sizeof name, 64), 1);
  assert_int_equal(cs_event_name_of("Item"), HALF + 1);
  assert_int_equal(cs_event_name_of("Other"), HALF + 2);
  cs_event_names_free();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(not_all_names_are_kept),
      cmocka_unit_test(a_name_as_the_runtime_has_it_is_the_same_names),
      cmocka_unit_test(a_name_that_is_cut_is_not_taken_for_another),
      cmocka_unit_test(a_plain_name_is_cut_too),
      cmocka_unit_test(the_last_name_is_recognised_in_an_event),
      cmocka_unit_test(each_event_is_counted_once),
      cmocka_unit_test(types_of_one_name_are_told_apart_by_their_class),
      cmocka_unit_test(classes_have_half_of_the_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
