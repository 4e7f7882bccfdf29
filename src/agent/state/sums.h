// SPDX-License-Identifier: MIT
// Weights of samples of events, so that those of a group of events (a type of objects, or all waits
// of a mode) add up to the values of all events of the group, walked or not. Any thread, except
// where a function says otherwise. Not for handlers.
#pragma once

#include <stdint.h>

// All zero: no event yet.
struct cs_sum {
  uint64_t counted, given;  // atomic: the values of all events, and the weights of the walked ones
};

void cs_type_sums_begin(void);  // at the beginning of a recording: the agent's thread
struct cs_sum *cs_type_sum_of(uint64_t type);  // of the objects of a type
// Counts an event, before it is known whether it is walked.
void cs_sum_add(struct cs_sum *sum, uint64_t value);
// Returns the weight of an event that is walked: `weight`, which is its value divided by the
// probability of the walk, plus or minus a part of what the samples so far lack or have too much.
uint64_t cs_sum_weigh(struct cs_sum *sum, uint64_t value, uint64_t weight);
