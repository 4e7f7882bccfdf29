// SPDX-License-Identifier: MIT
// Two profiles of the same mode in one call tree: each node has its numbers of both. Threads and
// frames are matched by name.
#pragma once

#include "profile/change.h"
#include "profile/profile.h"

enum cs_normalize {
  CS_NORMALIZE_TOTAL,  // as shares of each recording's total
  CS_NORMALIZE_RATE,   // per second of each recording
  CS_NORMALIZE_NONE,   // as recorded
};

struct cs_diff {
  struct cs_profile profile;      // both trees, with the numbers and facts of `after`
  const struct cs_facts *before;  // must live as long as the diff
  uint64_t *samples, *weight;     // per node, before
  double *squares;
  enum cs_normalize normalize;
  double samples_scale, weight_scale;  // factors that make the numbers of `before` comparable
  uint64_t idle_weight[2];             // left out: of idle threads, before and after
  struct cs_comparison whole;          // of nothing yet: with what a part is compared to, and how
};

// `leave_out`: what profile/waits.h leaves out of the two is not in the numbers.
void cs_diff_make(struct cs_diff *d, const struct cs_profile *before,
                  const struct cs_profile *after, enum cs_normalize normalize, bool leave_out);
// Returns the comparison of a part of the samples: the sums of their weights, before and after, and
// of the squares of these.
struct cs_comparison cs_diff_compare(const struct cs_diff *d, enum cs_change_kind kind,
                                     const double part[2], const double squares[2]);
// Prints a line for each difference between the two recordings that does not come from the program,
// and that no interval includes: different engines, frames that only one of them has, a different
// depth limit. `prefix` comes before each line.
void cs_diff_put_reasons(const struct cs_diff *d, const char *prefix, FILE *out);
void cs_diff_free(struct cs_diff *d);
// Returns whether samples have ended in the node, in a comparison those of either recording.
bool cs_profile_has_own(const struct cs_profile *p, size_t node);
const char *cs_normalize_token(enum cs_normalize normalize);  // "total", "rate", "none"
