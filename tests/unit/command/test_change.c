// SPDX-License-Identifier: MIT
// Changes between two recordings: known values, and how often the test is wrong about simulated
// recordings whose truth is known. The seed is fixed, so each run has the same numbers.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "profile/condition.h"

enum { PAIRS = 4000 };

static uint64_t state_of_random;

static double uniform(void) {  // splitmix64
  uint64_t x = state_of_random += 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static struct cs_measure equal_samples(double hits, double all) {
  return (struct cs_measure){hits, hits, all, all};
}

static struct cs_comparison shares(enum cs_change_kind kind, double hits_before, double before,
                                   double hits_after, double after) {
  return (struct cs_comparison){kind, true, equal_samples(hits_before, before),
                                equal_samples(hits_after, after)};
}

static void assert_near(double got, double want, double by) {
  if (!(fabs(got - want) <= by)) fail_msg("%.6f is not %.6f", got, want);
}

// Worked out by the textbook's formulas: the pooled z test of two shares, z = 3.3806, and Wilson's
// interval of one.
static void known_values(void **state) {
  (void)state;
  double low, high;
  struct cs_comparison c = shares(CS_CHANGE_RATIO, 100, 1000, 150, 1000);
  assert_near(cs_change_measured(&c), 1.5, 1e-12);
  assert_near(cs_change_chance(&c, 1), 0.00036163, 1e-7);
  c.kind = CS_CHANGE_DIFFERENCE;
  assert_near(cs_change_measured(&c), 0.05, 1e-12);
  assert_near(cs_change_chance(&c, 0), 0.00036163, 1e-7);
  cs_change_interval(&c, &low, &high);
  assert_near(low, 0.0210, 0.0005);
  assert_near(high, 0.0790, 0.0005);
  c = shares(CS_CHANGE_LEVEL, 0, 0, 60, 1000);
  cs_change_interval(&c, &low, &high);
  assert_near(low, 0.046896, 1e-5);
  assert_near(high, 0.076471, 1e-5);
  assert_near(cs_share_error(1000, 1000), 0.030990, 1e-5);
}

// What stands for a limit that the test would just reject, or just not.
static void an_interval_inverts_the_test(void **state) {
  (void)state;
  for (int kind = CS_CHANGE_RATIO; kind <= CS_CHANGE_LEVEL; kind++) {
    for (int amounts = 0; amounts < 2; amounts++) {
      struct cs_comparison c = shares((enum cs_change_kind)kind, 40, 500, 90, 800);
      double low, high;
      c.shares = !amounts;
      cs_change_interval(&c, &low, &high);
      assert_true(low < cs_change_measured(&c) && cs_change_measured(&c) < high);
      assert_near(cs_change_chance(&c, low), CS_CHANGE_SIGNIFICANCE, 1e-6);
      assert_near(cs_change_chance(&c, high), 1 - CS_CHANGE_SIGNIFICANCE, 1e-6);
    }
  }
}

static void nothing_is_no_special_case(void **state) {
  (void)state;
  double low, high;
  struct cs_comparison c = shares(CS_CHANGE_RATIO, 0, 1000, 40, 1000);
  assert_true(isinf(cs_change_measured(&c)));
  assert_true(cs_change_chance(&c, 1.05) < 1e-6);
  cs_change_interval(&c, &low, &high);
  assert_true(low > 5 && isinf(high));
  c = shares(CS_CHANGE_RATIO, 40, 1000, 0, 1000);
  cs_change_interval(&c, &low, &high);
  assert_true(low < 1e-6 && high < 0.2);
  c = shares(CS_CHANGE_RATIO, 0, 1000, 0, 1000);
  assert_true(isnan(cs_change_measured(&c)));
  assert_near(cs_change_chance(&c, 1.05), 0.5, 1e-9);
  c = shares(CS_CHANGE_DIFFERENCE, 0, 1000, 0, 1000);
  cs_change_interval(&c, &low, &high);
  assert_true(low >= -0.02 && low <= 0 && high >= 0 && high <= 0.02);
  c = shares(CS_CHANGE_LEVEL, 0, 0, 0, 0);
  cs_change_interval(&c, &low, &high);
  assert_true(low >= 0 && high <= 1);
  // One sample is no evidence.
  c = shares(CS_CHANGE_RATIO, 0, 1000, 1, 1000);
  assert_true(cs_change_chance(&c, 1) > CS_CHANGE_SIGNIFICANCE);
}

// How heavy a sample is, of the part in question or of the rest.
typedef double weigh(bool part);

static double all_equal(bool part) {
  (void)part;
  return 1;
}

static double uneven(bool part) {
  (void)part;
  return uniform() < 0.1 ? 14 : 1;
}

static double heavy_part(bool part) {
  return part ? 1 + 4 * uniform() : uniform();
}

static struct cs_measure simulate(int samples, double share, weigh *weight) {
  struct cs_measure m = {0, 0, 0, 0};
  for (int i = 0; i < samples; i++) {
    bool part = uniform() < share;
    double w = weight(part);
    m.whole += w;
    m.whole_squares += w * w;
    if (!part) continue;
    m.part += w;
    m.part_squares += w * w;
  }
  return m;
}

struct truth {
  enum cs_change_kind kind;
  bool shares;
  int before, after;  // samples
  double share[2];    // of which so many are in question
  weigh *weight;
  double limit;
};

static double rate_of_alarms(const struct truth *t) {
  int alarms = 0;
  for (int i = 0; i < PAIRS; i++) {
    struct cs_comparison c = {t->kind, t->shares, simulate(t->before, t->share[0], t->weight),
                              simulate(t->after, t->share[1], t->weight)};
    if (!t->shares) {  // per second: as many as there are samples
      c.before.whole = t->before;
      c.after.whole = t->after;
    }
    alarms += cs_change_chance(&c, t->limit) < CS_CHANGE_SIGNIFICANCE;
  }
  return (double)alarms / PAIRS;
}

static void false_alarms_are_as_rare_as_stated(void **state) {
  static const struct truth truths[] = {
      {CS_CHANGE_RATIO, true, 1000, 1000, {0.1, 0.1}, all_equal, 1},
      {CS_CHANGE_RATIO, true, 300, 3000, {0.05, 0.05}, all_equal, 1},
      {CS_CHANGE_RATIO, true, 2000, 500, {0.1, 0.1}, all_equal, 1},
      {CS_CHANGE_RATIO, true, 1000, 1000, {0.2, 0.24}, all_equal, 1.2},
      {CS_CHANGE_RATIO, true, 1000, 1000, {0.1, 0.1}, uneven, 1},
      {CS_CHANGE_RATIO, true, 1000, 1000, {0.1, 0.1}, heavy_part, 1},
      {CS_CHANGE_RATIO, false, 1000, 1000, {0.05, 0.05}, all_equal, 1},
      {CS_CHANGE_RATIO, false, 1000, 2000, {0.05, 0.05}, uneven, 1},
      {CS_CHANGE_DIFFERENCE, true, 1000, 1000, {0.3, 0.35}, all_equal, 0.05},
      {CS_CHANGE_LEVEL, true, 1000, 1000, {0.1, 0.3}, all_equal, 0.3},
  };
  (void)state;
  for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
    state_of_random = 12 + i;
    double rate = rate_of_alarms(&truths[i]);
    print_message("case %zu: false alarms %.2f %%\n", i, 100 * rate);
    // Four standard deviations of 4000 pairs are one percent.
    if (rate < 0.015 || rate > 0.035) fail_msg("case %zu: %.2f %%", i, 100 * rate);
  }
}

static void true_alarms_are_raised(void **state) {
  static const struct truth truths[] = {
      {CS_CHANGE_RATIO, true, 1000, 1000, {0.1, 0.16}, all_equal, 1.05},
      {CS_CHANGE_RATIO, true, 1000, 1000, {0.1, 0.2}, uneven, 1.05},
      {CS_CHANGE_DIFFERENCE, true, 1000, 1000, {0.1, 0.2}, all_equal, 0.02},
      {CS_CHANGE_LEVEL, true, 1000, 1000, {0.1, 0.4}, all_equal, 0.3},
  };
  (void)state;
  for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
    state_of_random = 12 + i;
    double rate = rate_of_alarms(&truths[i]);
    if (rate < 0.8) fail_msg("case %zu: %.2f %%", i, 100 * rate);
  }
}

static void globs(void **state) {
  static const struct {
    const char *glob, *name;
    bool matches;
  } cases[] = {
      {"", "", true},
      {"*", "", true},
      {"", "a", false},
      {"a", "a", true},
      {"a", "ab", false},
      {"?", "a", true},
      {"?", "", false},
      {"a*", "a", true},
      {"*a", "ba", true},
      {"*a", "ab", false},
      {"a*c", "abc", true},
      {"a*b*c", "axxbyyc", true},
      {"a*b*c", "axxcyyb", false},
      {"*ab", "aab", true},
      {"*.Work", "Shop.Cart<int>.Work", true},
      {"Shop.*", "Shopping.X", false},
      {"[lib*]", "[libcoreclr.so]", true},
      {"**", "ab", true},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (cs_glob_matches(cases[i].glob, strlen(cases[i].glob), cases[i].name,
                        strlen(cases[i].name)) != cases[i].matches)
      fail_msg("'%s' and '%s'", cases[i].glob, cases[i].name);
}

static void conditions(void **state) {
  static const struct {
    const char *text, *glob;
    enum cs_wire_mode mode;
    bool total;
    enum cs_change_kind kind;
    double limit;
  } cases[] = {
      {"self(a)>+5%", "a", 0, false, CS_CHANGE_RATIO, 1.05},
      {" total( a b )  >  + 0.5 pt ", " a b ", 0, true, CS_CHANGE_DIFFERENCE, 0.005},
      {"alloc:self(*) > 30%", "*", CS_WIRE_MODE_ALLOC, false, CS_CHANGE_LEVEL, 0.3},
      {"self(A<B>.C(int, ref D)) > +400%", "A<B>.C(int, ref D)", 0, false, CS_CHANGE_RATIO, 5},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cs_condition c;
    struct cs_error err = {""};
    size_t at;
    if (!cs_condition_parse(cases[i].text, &c, &at, &err))
      fail_msg("%s: %s at %zu", cases[i].text, err.text, at);
    assert_true(c.mode == cases[i].mode && c.total == cases[i].total && c.kind == cases[i].kind);
    assert_near(c.limit, cases[i].limit, 1e-12);
    assert_int_equal(c.glob_len, strlen(cases[i].glob));
    assert_memory_equal(c.glob, cases[i].glob, c.glob_len);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_values),
      cmocka_unit_test(an_interval_inverts_the_test),
      cmocka_unit_test(nothing_is_no_special_case),
      cmocka_unit_test(false_alarms_are_as_rare_as_stated),
      cmocka_unit_test(true_alarms_are_raised),
      cmocka_unit_test(globs),
      cmocka_unit_test(conditions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
