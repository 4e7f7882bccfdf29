// SPDX-License-Identifier: MIT
// Two profiles of the same mode as one: each node of the tree with what it has now and what it had
// before. Threads and frames are the same when their names are.
#ifndef CS_PROFILE_DIFF_H
#define CS_PROFILE_DIFF_H

#include "profile/profile.h"

enum cs_normalize {
  CS_NORMALIZE_TOTAL,  // shares of each recording's whole
  CS_NORMALIZE_RATE,   // per second of each recording
  CS_NORMALIZE_NONE,   // as recorded
};

struct cs_diff {
  struct cs_profile profile;      // both trees, with the numbers and facts of `after`
  const struct cs_facts *before;  // must live as long as the diff
  uint64_t *samples, *weight;     // per node, before
  enum cs_normalize normalize;
  double samples_scale, weight_scale;  // what was before, times these, compares with after
};

void cs_diff_make(struct cs_diff *d, const struct cs_profile *before,
                  const struct cs_profile *after, enum cs_normalize normalize);
void cs_diff_free(struct cs_diff *d);
// Whether samples have ended in that node of a profile: of a comparison, in either recording.
bool cs_profile_has_own(const struct cs_profile *p, size_t node);
const char *cs_normalize_token(enum cs_normalize normalize);  // "total", "rate", "none"

#endif
