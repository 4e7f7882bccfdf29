// SPDX-License-Identifier: MIT
// How much larger than its recording a file would be: stacks share their frames in a call tree, and
// most formats write out every stack.
#pragma once

#include "profile/profile.h"

enum cs_expansion {
  CS_EXPAND_NOTHING,  // the tree itself
  CS_EXPAND_STACKS,   // each distinct stack
  CS_EXPAND_SAMPLES,  // each sample's stack
  CS_EXPAND_CHANGES,  // what changes from one sample's stack to the next; for events, whole stacks
};

// The most frames that are written from a recording of that many bytes. A frame with a name longer
// than CS_EXPANSION_FRAME_BYTES counts as several.
#define CS_EXPANSION_FRAME_BYTES 64u
uint64_t cs_expansion_limit(uint64_t recording_bytes);
// Returns whether the profile would exceed the limit. Nothing is written.
bool cs_expands_beyond(const struct cs_profile *p, enum cs_expansion expansion, uint64_t limit);
