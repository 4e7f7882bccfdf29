// SPDX-License-Identifier: MIT
// Values of record's options: what they are parsed to, and which are refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "util/spelling.h"

static bool parse(struct cs_record_options *o, const char *option, const char *value) {
  char words[3][64], mode[] = "--mode", modes[] = "alloc,exception";
  char *argv[] = {"record", mode, modes, words[0], words[1], words[2], NULL};
  struct cs_error err = {""};
  (void)snprintf(words[0], sizeof words[0], "%s", option);
  (void)snprintf(words[1], sizeof words[1], "%s", value);
  (void)snprintf(words[2], sizeof words[2], "true");
  bool help = true;
  bool ok = cs_command_parse(&cs_record_command, o, 6, argv, &help, &err);
  assert_false(help);
  if (!ok && strstr(err.text, value) == NULL) fail_msg("%s %s: %s", option, value, err.text);
  return ok;
}

static void bytes_between_objects(void **state) {
  static const struct {
    const char *text;
    uint64_t bytes;
  } good[] = {
      {"100k", 102400},   {"100K", 102400},     {"102400", 102400}, {"512k", 524288},
      {"1.5m", 1572864},  {"1M", 1048576},      {"1g", 1ull << 30}, {"1073741824", 1ull << 30},
      {"1024k", 1048576}, {"0.5g", 1ull << 29},
  };
  static const char *const bad[] = {"0",     "1",     "99k", "102399", "1025m", "1.1g",
                                    "2g",    "-100k", "k",   "100",    "100kb", "100x",
                                    "512 k", "1t",    "nan", "infk",   "100k,"};
  struct cs_record_options o;
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    assert_true(parse(&o, "--alloc", good[i].text));
    if (o.agent.ask.alloc_interval != good[i].bytes)
      fail_msg("%s is %lu", good[i].text, (unsigned long)o.agent.ask.alloc_interval);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (parse(&o, "--alloc", bad[i]))
      fail_msg("'%s' is %lu", bad[i], (unsigned long)o.agent.ask.alloc_interval);
}

static void events_a_second(void **state) {
  struct cs_record_options o;
  (void)state;
  assert_true(parse(&o, "--event-rate", "500") && o.agent.ask.event_rate == 500);
  assert_true(parse(&o, "--event-rate", "1000000") && o.agent.ask.event_rate == 1000000);
  assert_false(parse(&o, "--event-rate", "0"));
  assert_false(parse(&o, "--event-rate", "1000001"));
  assert_false(parse(&o, "--event-rate", "5.5"));
}

// What the command line does not say is decided by what it costs.
static void unless_told(void **state) {
  struct cs_record_options o;
  (void)state;
  assert_true(parse(&o, "--mode", "alloc"));
  assert_true(o.agent.ask.alloc_interval == 0 && o.agent.ask.event_rate == 0 &&
              o.agent.ask.budget_ppm == 0);
  assert_true(parse(&o, "--budget", "0.3%") && o.agent.ask.budget_ppm == 3000);
}

static bool accept(void *options, int count, char **operands, struct cs_error *err) {
  (void)options, (void)operands, (void)err;
  return count == 0;
}

// A verb whose options do not fit loses none of them silently.
static void too_many_options(void **state) {
  enum { MOST = 64 };
  static struct cs_option options[MOST + 2];
  static char names[MOST + 1][16];
  static const struct cs_option_group groups[] = {{NULL, options, 0}, {0}};
  static const struct cs_command command = {
      .name = "many", .groups = groups, .size = MOST + 1, .check = accept};
  bool set[MOST + 1], help;
  struct cs_error err = {""};
  char *argv[] = {"many", "--option-63", NULL};
  (void)state;
  for (size_t i = 0; i < MOST; i++) {
    (void)snprintf(names[i], sizeof names[i], "option-%zu", i);
    options[i] = (struct cs_option){.name = names[i], .field = i};
  }
  assert_true(cs_command_parse(&command, set, 2, argv, &help, &err));
  assert_true(set[MOST - 1]);
  options[MOST] = (struct cs_option){.name = "last", .field = MOST};
  assert_false(cs_command_parse(&command, set, 2, argv, &help, &err));
  assert_string_equal(err.text, "many has more than 64 options");
}

static void times(void **state) {
  static const struct {
    const char *text;
    double seconds;
  } good[] = {{"10", 10}, {"10s", 10}, {"0.5", 0.5}, {"500ms", 0.5}, {"2m", 120}, {"1.5h", 5400}};
  static const char *const bad[] = {"s",   "10S",  "10 s", "1d",  "1ms0", "-1s",
                                    "nan", "infs", "0",    "0ms", "200h"};
  struct cs_record_options o;
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    assert_true(parse(&o, "--duration", good[i].text));
    assert_true(o.seconds > good[i].seconds - 1e-9 && o.seconds < good[i].seconds + 1e-9);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (parse(&o, "--duration", bad[i])) fail_msg("'%s' is %f s", bad[i], o.seconds);
}

// Words of a command line that come to the same; options may follow a PID, but not a program.
static void options_after_the_process(void **state) {
  (void)state;
  struct cs_record_options o;
  struct cs_error err = {""};
  bool help = false;
  char *after[] = {"record", "4711", "-d", "2m", "--lines", NULL};
  assert_true(cs_command_parse(&cs_record_command, &o, 5, after, &help, &err));
  assert_true(o.agent.pid == 4711 && o.agent.program == NULL && o.agent.ask.lines);
  char *program[] = {"record", "-d", "2m", "true", "--lines", NULL};
  assert_true(cs_command_parse(&cs_record_command, &o, 5, program, &help, &err));
  assert_true(o.agent.pid == 0 && !o.agent.ask.lines);
  assert_string_equal(o.agent.program[0], "true");
  assert_string_equal(o.agent.program[1], "--lines");
  char *number[] = {"record", "--", "4711", "-d", NULL};
  assert_true(cs_command_parse(&cs_record_command, &o, 4, number, &help, &err));
  assert_string_equal(o.agent.program[0], "4711");
  char *both[] = {"record", "4711", "-d", "1", "true", NULL};
  assert_false(cs_command_parse(&cs_record_command, &o, 5, both, &help, &err));
}

static void near_words(void **state) {
  static const struct {
    const char *a, *b;
    size_t distance;
  } cases[] = {{"", "", 0},
               {"a", "", 1},
               {"record", "recrod", 1},
               {"wall", "walls", 1},
               {"kitten", "sitting", 3},
               {"ab", "ba", 1},
               {"diff", "dif", 1},
               {"stack", "top", 4}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t a = strlen(cases[i].a), b = strlen(cases[i].b);
    assert_int_equal(cs_word_distance(cases[i].a, a, cases[i].b, b), cases[i].distance);
    assert_int_equal(cs_word_distance(cases[i].b, b, cases[i].a, a), cases[i].distance);
  }
  struct cs_spelling near = {.word = "dif"};
  cs_spelling_offer(&near, "ps", 2);
  assert_null(near.found);
  cs_spelling_offer(&near, "diff", 4);
  assert_string_equal(near.found, "diff");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_between_objects),
      cmocka_unit_test(events_a_second),
      cmocka_unit_test(unless_told),
      cmocka_unit_test(too_many_options),
      cmocka_unit_test(times),
      cmocka_unit_test(options_after_the_process),
      cmocka_unit_test(near_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
