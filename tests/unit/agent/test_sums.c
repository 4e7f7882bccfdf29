// SPDX-License-Identifier: MIT
// One of many objects is chosen, with a probability that changes, as the throttle does it. The
// samples of a type must add up to its bytes, and those of each of its stacks to that stack's.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/random.h"
#include "state/sums.h"

enum { TYPES = 4, STACKS = 2, OBJECTS = 40000, ROUNDS = 40 };

static uint64_t random_state = 12345;

static double uniform(void) {
  return (double)(cs_random_next(&random_state) >> 11) / (double)(1ull << 53);
}

struct sums {
  double bytes[TYPES][STACKS], plain[TYPES], samples[TYPES][STACKS];
};

// Type 0 has the small objects; a quarter of the objects of each type are of stack 0.
static struct sums record(void) {
  struct sums s = {0};
  cs_type_sums_begin();
  for (int i = 0; i < OBJECTS; i++) {
    unsigned type = (unsigned)(uniform() * TYPES), stack = uniform() < 0.25 ? 0 : 1;
    double chance = i < OBJECTS / 10 ? 0.2 : 0.02, bytes = type == 0 ? 102400 : 400000;
    s.bytes[type][stack] += bytes;
    cs_sum_add(cs_type_sum_of(type), (uint64_t)bytes);
    if (uniform() >= chance) continue;
    s.plain[type] += bytes / chance;
    s.samples[type][stack] +=
        (double)cs_sum_weigh(cs_type_sum_of(type), (uint64_t)bytes, (uint64_t)(bytes / chance));
  }
  return s;
}

static void sums_of_types_are_right(void **state) {
  (void)state;
  double off = 0, bias = 0, plainly_off = 0, stack_off = 0;
  for (int round = 0; round < ROUNDS; round++) {
    struct sums s = record();
    for (int t = 0; t < TYPES; t++) {
      double bytes = s.bytes[t][0] + s.bytes[t][1], samples = s.samples[t][0] + s.samples[t][1];
      assert_true(fabs(samples / bytes - 1) < 0.06);
      off += fabs(samples / bytes - 1) / (ROUNDS * TYPES);
      bias += (samples / bytes - 1) / (ROUNDS * TYPES);
      plainly_off += fabs(s.plain[t] / bytes - 1) / (ROUNDS * TYPES);
      stack_off += (s.samples[t][0] / samples - s.bytes[t][0] / bytes) / (ROUNDS * TYPES);
    }
  }
  print_message(
      "types off by %.2f %% (%+.2f %%), by probabilities alone %.2f %%; stacks %+.2f points\n",
      100 * off, 100 * bias, 100 * plainly_off, 100 * stack_off);
  assert_true(off < 0.02);
  assert_true(fabs(bias) < 0.004);
  assert_true(plainly_off > 0.03);
  assert_true(fabs(stack_off) < 0.01);
}

static void a_type_without_a_choice_has_its_bytes(void **state) {
  (void)state;
  cs_type_sums_begin();
  for (int i = 0; i < 100; i++) {
    cs_sum_add(cs_type_sum_of(7), 102400);
    assert_int_equal(cs_sum_weigh(cs_type_sum_of(7), 102400, 102400), 102400);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_of_types_are_right),
      cmocka_unit_test(a_type_without_a_choice_has_its_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
