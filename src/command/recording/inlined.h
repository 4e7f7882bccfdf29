// SPDX-License-Identifier: MIT
// Methods that were inlined, as frames above the one that they were inlined into. The recording's
// own tree has none of them: its frames are pieces of machine code. One thread.
#ifndef CS_RECORDING_INLINED_H
#define CS_RECORDING_INLINED_H

#include "recording/recording.h"

// More than the JIT goes deep (20).
enum { CS_INLINED_DEPTH = 64 };

// What is shown in the place of a frame of the tree: the method itself, at the call, or without a
// place where that is not known; and what was inlined there, outermost first, as CS_REC_INLINED
// words. Answers how many; 0: the frame is shown as it is.
size_t cs_inlined_at(const struct cs_recording *rec, uint64_t frame,
                     uint64_t chain[CS_INLINED_DEPTH]);

// Fills in->calls: where a method has called what was inlined into it, by its IL map.
void cs_inlined_find_calls(const struct cs_recording *rec, struct cs_rec_inlines *in);

// A recording's tree and frames with those in it.
struct cs_inlined {
  const struct cs_recording *rec;
  const struct cs_tree *tree;
  const uint64_t *frames;  // those of the recording come first
  size_t frame_count;
  const uint32_t *node;  // per node of the recording: the one that its samples are in; NULL: itself
  // What of this is not the recording's own:
  struct cs_tree own_tree;
  uint64_t *own_frames;
  uint32_t *own_node;
};
void cs_inlined_make(struct cs_inlined *in, const struct cs_recording *rec);
void cs_inlined_free(struct cs_inlined *in);

#endif
