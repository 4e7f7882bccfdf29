// SPDX-License-Identifier: MIT
// The events of a set (allocations, waits, exceptions, pauses) by thread and time, for formats that
// show them together with the samples of a timed mode. One thread.
#pragma once

#include "profile/profile.h"

struct cs_marker {
  uint64_t begin_ns, end_ns;  // equal if the event has no duration
  const char *name;           // its type or reason; owned by the profile
  size_t len;
  const struct cs_profile *profile;  // that `leaf` belongs to
  uint64_t weight;
  uint32_t leaf;
  uint32_t thread;
  uint32_t index;  // in order of arrival
};

struct cs_markers {
  struct cs_marker *all;  // thread by thread
  size_t *first;          // the first of each thread, and the end
};

void cs_markers_make(struct cs_markers *m, const struct cs_profile_set *set);
void cs_markers_free(struct cs_markers *m);
