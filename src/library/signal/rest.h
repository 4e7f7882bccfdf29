// SPDX-License-Identifier: MIT
// rest: how often a thread may be sampled (struct cs_rest). Signal-safe: yes.
#ifndef CS_SIGNAL_REST_H
#define CS_SIGNAL_REST_H

#include "signal/thread.h"

enum {
  CS_REST_SHARE = 10,  // a thread may spend one part in so many of its time on samples
  // Events may differ, so they are put off only after this much walking.
  CS_REST_EVENTS_NS = 20000000,
};

// Returns whether the calling thread is at rest, so that no sample is taken now.
CS_ISLAND bool cs_rest_holds(const struct cs_rest *rest, uint64_t tsc);
CS_ISLAND bool cs_rest_holds_event(const struct cs_rest *rest, uint64_t tsc);
// Begins the rest after a sample that began at `begin` of the time-stamp counter and `begin_cpu` of
// the thread's CPU clock (0: not known). Returns what the sample has cost, in ns: without the time
// in which a long one had no processor.
CS_ISLAND uint64_t cs_rest_begin(struct cs_rest *rest, uint64_t begin, uint64_t begin_cpu);
// The same after an event's sample.
CS_ISLAND void cs_rest_begin_event(struct cs_rest *rest, uint64_t begin, uint64_t begin_cpu);

#endif
