// SPDX-License-Identifier: MIT
// The stop reasons: they are counters in recordings and sentences for people, so each must have its
// own token and text, and a number from a newer recording must not cause a crash.
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/stop.h"

static void every_reason_has_its_own_token_and_text(void **state) {
  (void)state;
  for (int i = 0; i < CS_STOP_COUNT; i++) {
    for (int j = 0; j < i; j++) {
      assert_string_not_equal(cs_stop_token((enum cs_stop)i), cs_stop_token((enum cs_stop)j));
      assert_string_not_equal(cs_stop_text((enum cs_stop)i), cs_stop_text((enum cs_stop)j));
    }
  }
}

// Tokens appear in files and on command lines: short, lower case, words joined by hyphens.
static void tokens_are_words(void **state) {
  (void)state;
  for (int i = 0; i < CS_STOP_COUNT; i++) {
    const char *token = cs_stop_token((enum cs_stop)i);
    assert_in_range(strlen(token), 1, 16);
    for (const char *c = token; *c != '\0'; c++)
      assert_true(islower((unsigned char)*c) || *c == '-');
  }
}

static void an_unknown_number_is_answered(void **state) {
  (void)state;
  const int outside[] = {CS_STOP_COUNT, CS_STOP_COUNT + 1, 65535, -1};
  for (size_t i = 0; i < CS_COUNT(outside); i++) {
    assert_string_equal(cs_stop_token((enum cs_stop)outside[i]), "?");
    assert_string_equal(cs_stop_text((enum cs_stop)outside[i]), "?");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_reason_has_its_own_token_and_text),
      cmocka_unit_test(tokens_are_words),
      cmocka_unit_test(an_unknown_number_is_answered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
