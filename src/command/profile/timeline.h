// SPDX-License-Identifier: MIT
// Samples as time: for each thread the spans that its samples stand for, in order, none over
// another. A sample stands for the time before it. Where there is no span the thread was not seen:
// in cpu mode it did not run.
#pragma once

#include "profile/profile.h"

struct cs_span {
  uint64_t begin_ns, end_ns;
  uint32_t leaf;  // node of the tree
  uint32_t samples;
  bool asleep;
};

struct cs_timeline {
  struct cs_span *spans;  // thread by thread
  size_t *first;          // per thread, and one more: first[t] to first[t + 1]
  uint32_t *thread;       // per node of the tree
};

// With `merge`, neighbouring samples of one stack are one span.
void cs_timeline_make(struct cs_timeline *t, const struct cs_profile *p, bool merge);
void cs_timeline_free(struct cs_timeline *t);
// Returns the indices of the profile's samples, by thread and time. `thread`: of each node. The
// caller frees the array.
uint32_t *cs_samples_in_order(const struct cs_profile *p, const uint32_t *thread);
// Per node of the tree: its thread.
uint32_t *cs_node_threads(const struct cs_tree *tree);
