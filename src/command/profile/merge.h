// SPDX-License-Identifier: MIT
// The profiles of a set in one: frames and stacks that several modes share exist once, for formats
// with several values per stack. One thread.
#pragma once

#include "profile/profile.h"

struct cs_merged {
  struct cs_profile profile;   // has no samples; its facts are the first profile's
  uint64_t *samples, *weight;  // by node and profile: [node * count + i]
  size_t count;                // profiles
  uint32_t **node;             // for each profile, its nodes' merged nodes
  // By entry of the merged profile's `labelled` and profile: [entry * count + i].
  uint64_t *label_samples, *label_weight;
  // The set's own, by label; NULL: there are none.
  const char *const *endpoints;
  const uint16_t *statuses;
};

void cs_merge(struct cs_merged *m, const struct cs_profile_set *set);
void cs_merged_free(struct cs_merged *m);
