// SPDX-License-Identifier: MIT
// cooldown: how often a thread may be sampled (struct cs_cooldown). Signal-safe: yes.
#pragma once

#include "signal/thread.h"

enum {
  CS_COOLDOWN_SHARE = 10,  // at most 1 / this of a thread's time goes to samples
  // Events may differ, so they are put off only after this much walking.
  CS_COOLDOWN_EVENTS_NS = 20000000,
};

// Return whether the calling thread is in its cooldown, so that no sample is taken now.
CS_ISLAND bool cs_in_cooldown(const struct cs_cooldown *cooldown, uint64_t tsc);
CS_ISLAND bool cs_in_event_cooldown(const struct cs_cooldown *cooldown, uint64_t tsc);
// Begins the cooldown after a sample that began at `begin` of the time-stamp counter and
// `begin_cpu` of the thread's CPU clock (0: not known), and whose walk may use `limit_ns` of CPU
// time (0: no limit). Returns what the sample has cost, in ns: without the time in which a long
// sample was switched out, and at most twice the limit.
CS_ISLAND uint64_t cs_cooldown_begin(struct cs_cooldown *cooldown, uint64_t begin,
                                     uint64_t begin_cpu, uint64_t limit_ns);
// Does the same after an event's sample.
CS_ISLAND void cs_cooldown_begin_event(struct cs_cooldown *cooldown, uint64_t begin,
                                       uint64_t begin_cpu, uint64_t limit_ns);
