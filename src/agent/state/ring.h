// SPDX-License-Identifier: MIT
// The reader's side of the sample ring (signal/sample.h). One thread: the agent's. Not for
// handlers.
#pragma once

#include "signal/sample.h"

// Maps the ring's memory, and populates it. `bytes`: a power of two, at least 64 KiB. Returns false
// if there is no memory.
bool cs_sample_ring_open(struct cs_sample_ring *ring, uint64_t bytes, uint32_t max_depth);
void cs_sample_ring_close(struct cs_sample_ring *ring);
// Returns the oldest record that is READY, or NULL. Valid until cs_sample_ring_pop.
const struct cs_sample *cs_sample_ring_peek(struct cs_sample_ring *ring);
void cs_sample_ring_pop(struct cs_sample_ring *ring, const struct cs_sample *sample);
// Bytes that are reserved or unread. Any thread.
uint64_t cs_sample_ring_used(const struct cs_sample_ring *ring);
