// SPDX-License-Identifier: MIT
// Weights of allocation samples, so that those of a type add up to what all of its objects stand
// for, walked or not. Any thread, except where a function says otherwise. Not for handlers.
#pragma once

#include <stdint.h>

void cs_type_sums_begin(void);  // at the beginning of a recording: the agent's thread
// Counts an object of the type, which stands for so many bytes. Called for each object, before it
// is known whether it is walked.
void cs_type_sums_add(uint64_t type, uint64_t bytes);
// Returns the weight of an object that is walked: `weight`, which is its `bytes` divided by the
// probability of the walk, plus or minus a part of what the type's samples so far lack or have too
// much.
uint64_t cs_type_sums_weight(uint64_t type, uint64_t bytes, uint64_t weight);
