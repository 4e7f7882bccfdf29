// SPDX-License-Identifier: MIT
// What a starved thread pool waits for, in words. One thread.
#pragma once

#include "recording/recording.h"

// Fills in the pool's cause in the profile's facts; wall mode only. `expanded` maps nodes of the
// recording to those of the tree with inlined methods (NULL: they are the same); `node` maps these
// to nodes of the profile, or to `left_out`.
void cs_pool_cause_find(struct cs_profile *p, const struct cs_recording *rec,
                        const uint32_t *expanded, const uint32_t *node, uint32_t left_out);
