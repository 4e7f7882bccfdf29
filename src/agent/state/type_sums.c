// SPDX-License-Identifier: MIT
// Where few of many objects are walked, the bytes of a type are known better than its samples show,
// because all of its objects are counted. Each sample makes up for half of the difference, so the
// sum of a type's samples is off by 1.3 times the weight of one (standard deviation), however many
// there are. The correction depends only on earlier samples of the type, not on the stack of the
// sample that gets it, so shares within a type are unbiased. Types with equal hashes share one sum.
#include "state/type_sums.h"

#include <string.h>

#include "base/base.h"
#include "base/hash.h"

enum { BITS = 12, PART = 2 };

static struct {
  uint64_t counted, given;  // atomic: bytes of all objects, and the weights of the walked ones
} sums[1 << BITS];

void cs_type_sums_begin(void) {
  memset(sums, 0, sizeof sums);
}

void cs_type_sums_add(uint64_t type, uint64_t bytes) {
  cs_add_relaxed(&sums[cs_hash_word(type, BITS)].counted, bytes);
}

uint64_t cs_type_sums_weight(uint64_t type, uint64_t bytes, uint64_t weight) {
  uint32_t at = (uint32_t)cs_hash_word(type, BITS);
  int64_t missing =
      (int64_t)(cs_load_relaxed(&sums[at].counted) - cs_load_relaxed(&sums[at].given));
  int64_t usual = (int64_t)weight, part = (missing - (int64_t)bytes) / PART;
  if (part < -usual / 2) part = -usual / 2;
  if (part > usual) part = usual;
  cs_add_relaxed(&sums[at].given, (uint64_t)(usual + part));
  return (uint64_t)(usual + part);
}
