// SPDX-License-Identifier: MIT
// How much larger a format makes a recording: a call tree shares the frames of its stacks, and most
// formats write each stack out.
#ifndef CS_PROFILE_EXPANSION_H
#define CS_PROFILE_EXPANSION_H

#include "profile/profile.h"

enum cs_expansion {
  CS_EXPAND_NOTHING,  // the tree itself
  CS_EXPAND_STACKS,   // each distinct stack
  CS_EXPAND_SAMPLES,  // each sample's stack
  CS_EXPAND_CHANGES,  // what each sample's stack has that the one before had not; of an event all
};

// More frames than that are not written from a recording of so many bytes. One whose name is longer
// than a frame's bytes counts as several.
#define CS_EXPANSION_FRAME_BYTES 64u
uint64_t cs_expansion_limit(uint64_t recording_bytes);
// Would it be more? The stacks are counted, not written.
bool cs_expands_beyond(const struct cs_profile *p, enum cs_expansion expansion, uint64_t limit);

#endif
