// SPDX-License-Identifier: MIT
// The profiles of a set as one: frames and stacks that several modes have are there once. For
// formats that show several values of one stack. One thread.
#ifndef CS_PROFILE_MERGE_H
#define CS_PROFILE_MERGE_H

#include "profile/profile.h"

struct cs_merged {
  struct cs_profile profile;   // without samples; its facts are the first one's
  uint64_t *samples, *weight;  // per node and profile: [node * count + i]
  size_t count;                // profiles
  uint32_t **node;             // per profile and node of its own: the merged one
  // Of the merged profile's `labelled`, per entry and profile: [entry * count + i].
  uint64_t *label_samples, *label_weight;
};

void cs_merge(struct cs_merged *m, const struct cs_profile_set *set);
void cs_merged_free(struct cs_merged *m);

#endif
