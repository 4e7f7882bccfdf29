// SPDX-License-Identifier: MIT
// rest: how often a thread may be sampled (struct cs_rest). Signal-safe: yes.
#ifndef CS_SIGNAL_REST_H
#define CS_SIGNAL_REST_H

#include "signal/thread.h"

enum {
  CS_REST_SHARE = 10,  // of its time a thread may spend one part in so many on samples
  // Events are not put off one by one, since each may be another: so many nanoseconds of walking
  // come first.
  CS_REST_EVENTS_NS = 20000000,
};

// Is the thread, the calling one, to be left alone now?
CS_ISLAND bool cs_rest_holds(const struct cs_rest *rest, uint64_t tsc);
CS_ISLAND bool cs_rest_holds_event(const struct cs_rest *rest, uint64_t tsc);
// A sample of the thread has taken from `begin` to now, of the time-stamp counter, and from
// `begin_cpu`, of its CPU clock; 0: that is not known.
CS_ISLAND void cs_rest_begin(struct cs_rest *rest, uint64_t begin, uint64_t begin_cpu);
// The same of an event's; of CPU time it was no more than `most_ns`, if that is not 0.
CS_ISLAND void cs_rest_begin_event(struct cs_rest *rest, uint64_t begin, uint64_t most_ns);

#endif
