// SPDX-License-Identifier: MIT
// Inlined methods, as callees of the frame that they were inlined into. The recording's own tree
// has none of them, because its frames are places in machine code. One thread.
#pragma once

#include "recording/recording.h"

// More than the JIT's limit (20).
enum { CS_INLINED_DEPTH = 64 };

// The keys that replace a frame of the tree: the method itself, at the call or, if that is unknown,
// without a place; then the methods that were inlined there, outermost first. Returns their number;
// 0: the frame stays as it is.
size_t cs_inlined_at(const struct cs_recording *rec, uint64_t frame,
                     uint64_t chain[CS_INLINED_DEPTH]);

// A recording's tree and frames with inlined methods in them.
struct cs_inlined {
  const struct cs_recording *rec;
  const struct cs_tree *tree;
  const uint64_t *frames;  // the recording's come first
  size_t frame_count;
  const uint32_t *node;  // by node of the recording: the leaf of its samples; NULL: the same node
  // What does not belong to the recording:
  struct cs_tree own_tree;
  uint64_t *own_frames;
  uint32_t *own_node;
};
void cs_inlined_make(struct cs_inlined *in, const struct cs_recording *rec);
void cs_inlined_free(struct cs_inlined *in);
