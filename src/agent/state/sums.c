// SPDX-License-Identifier: MIT
// Where few of many events are walked, the sum of a group is known better than its samples show,
// because all of its events are counted. Each sample makes up for half of the difference, so the
// sum of a group's samples is off by 1.3 times the weight of one (standard deviation), however many
// there are. The correction depends only on earlier samples of the group, not on the stack of the
// sample that gets it, so shares within a group are unbiased. Types with equal hashes share one
// sum.
#include "state/sums.h"

#include <string.h>

#include "base/base.h"
#include "base/hash.h"

enum { BITS = 12, PART = 2 };

static struct cs_sum types[1 << BITS];

void cs_type_sums_begin(void) {
  memset(types, 0, sizeof types);
}

struct cs_sum *cs_type_sum_of(uint64_t type) {
  return &types[cs_hash_word(type, BITS)];
}

void cs_sum_add(struct cs_sum *sum, uint64_t value) {
  cs_add_relaxed(&sum->counted, value);
}

uint64_t cs_sum_weigh(struct cs_sum *sum, uint64_t value, uint64_t weight) {
  int64_t missing = (int64_t)(cs_load_relaxed(&sum->counted) - cs_load_relaxed(&sum->given));
  int64_t usual = (int64_t)weight, part = (missing - (int64_t)value) / PART;
  if (part < -usual / 2) part = -usual / 2;
  if (part > usual) part = usual;
  cs_add_relaxed(&sum->given, (uint64_t)(usual + part));
  return (uint64_t)(usual + part);
}
