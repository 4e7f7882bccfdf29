// SPDX-License-Identifier: MIT
// A histogram of hold times in constant memory: 64 buckets per power of two, so the error of a
// percentile is at most 1/64; each value below 128 has its own bucket. Invariant: the sum of the
// buckets is `count`. One thread. Signal-safe: no.
#include "recording/recording.h"

#define STEP_BITS 6u

static unsigned bucket_of(uint32_t ns) {
  unsigned top = 31u - (unsigned)__builtin_clz(ns | 1u);
  if (top <= STEP_BITS) return ns;
  unsigned shift = top - STEP_BITS;
  return ((shift + 1) << STEP_BITS) + ((ns >> shift) & ((1u << STEP_BITS) - 1));
}

// The largest value of a bucket: a percentile must not be too small.
static uint64_t bucket_end(unsigned bucket) {
  if (bucket < (2u << STEP_BITS)) return bucket;
  unsigned shift = (bucket >> STEP_BITS) - 1;
  uint64_t mantissa = (1u << STEP_BITS) + (bucket & ((1u << STEP_BITS) - 1));
  return ((mantissa + 1) << shift) - 1;
}

void cs_held_add(struct cs_held *held, uint32_t ns) {
  _Static_assert(((31u - STEP_BITS + 2) << STEP_BITS) <= CS_HELD_BUCKETS, "2^32 - 1 has a bucket");
  held->bucket[bucket_of(ns)]++;
  held->count++;
  if (ns > held->max_ns) held->max_ns = ns;
}

uint64_t cs_held_percentile(const struct cs_held *held, double fraction) {
  uint64_t rank = (uint64_t)(fraction * (double)held->count);
  uint64_t seen = 0;
  for (unsigned i = 0; i < CS_HELD_BUCKETS; i++) {
    seen += held->bucket[i];
    if (seen > rank) return bucket_end(i) < held->max_ns ? bucket_end(i) : held->max_ns;
  }
  return held->max_ns;
}
