// SPDX-License-Identifier: MIT
// The size of what a format would write, found out before it is written. Invariant: it takes no
// more time than the limit has frames, and a path of the tree for each sample. One thread.
// Signal-safe: no.
#include "profile/expansion.h"

#include <stdlib.h>

// A recording of 1 MB has up to 32 million frames: 30 times those of one whose samples have stacks
// of 64 frames that share nothing.
#define ALWAYS (16ull << 20)
#define PER_BYTE 16u

uint64_t cs_expansion_limit(uint64_t recording_bytes) {
  return recording_bytes < (UINT64_MAX - ALWAYS) / PER_BYTE ? ALWAYS + PER_BYTE * recording_bytes
                                                            : UINT64_MAX;
}

// Per node: how many frames its stack has. Parents come before their children.
static uint32_t *depths_of(const struct cs_tree *tree) {
  uint32_t *depths = cs_allocate(tree->count * sizeof *depths);
  for (size_t i = 1; i < tree->count; i++) depths[i] = depths[tree->nodes[i].parent] + 1;
  return depths;
}

// The frames of `node` that are not those of `before`: up to where their ways to the root meet.
static uint32_t change(const struct cs_tree *tree, const uint32_t *depths, uint32_t before,
                       uint32_t node) {
  uint32_t frames = 0;
  while (node != before) {
    if (depths[node] < depths[before]) {
      before = tree->nodes[before].parent;
      continue;
    }
    node = tree->nodes[node].parent;
    frames++;
  }
  return frames;
}

bool cs_expands_beyond(const struct cs_profile *p, enum cs_expansion expansion, uint64_t limit) {
  const struct cs_tree *tree = &p->tree;
  uint64_t frames = 0;
  uint32_t before = 0;
  if (expansion == CS_EXPAND_NOTHING) return false;
  uint32_t *depths = depths_of(tree);
  for (size_t i = 1; i < tree->count && frames <= limit; i++)
    if (tree->nodes[i].samples > 0) frames += depths[i];
  for (size_t i = 0; i < p->labelled.count && frames <= limit; i++)
    frames += depths[p->labelled.items[i].node];
  if (expansion != CS_EXPAND_STACKS) frames = 0;
  for (size_t i = 0; expansion != CS_EXPAND_STACKS && i < p->sample_count && frames <= limit; i++) {
    uint32_t leaf = p->samples[i].leaf;
    frames += expansion == CS_EXPAND_SAMPLES ? depths[leaf] : change(tree, depths, before, leaf);
    before = leaf;
  }
  free(depths);
  return frames > limit;
}
