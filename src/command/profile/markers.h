// SPDX-License-Identifier: MIT
// The events of a set (allocations, waits, exceptions, pauses) by thread, in order of time: for
// formats that show them beside the samples of another mode. One thread.
#ifndef CS_PROFILE_MARKERS_H
#define CS_PROFILE_MARKERS_H

#include "profile/profile.h"

struct cs_marker {
  uint64_t begin_ns, end_ns;  // the same: it takes no time
  const char *name;           // what it is about; in the profile
  size_t len;
  const struct cs_profile *profile;  // it is of, and in that
  uint64_t weight;
  uint32_t leaf;
  uint32_t thread;
  uint32_t index;  // as they came
};

struct cs_markers {
  struct cs_marker *all;  // thread by thread
  size_t *first;          // per thread, and one more
};

void cs_markers_make(struct cs_markers *m, const struct cs_profile_set *set);
void cs_markers_free(struct cs_markers *m);

#endif
