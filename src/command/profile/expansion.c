// SPDX-License-Identifier: MIT
// How many frames a format would write, counted beforehand. Invariant: the time that this takes is
// bounded by the limit and, for each sample, by the depth of its stack. One thread. Signal-safe:
// no.
#include "profile/expansion.h"

#include <stdlib.h>

#include "profile/diff.h"

// A recording of 1 MB has up to 32 million frames: 30 times those of one whose samples have stacks
// of 64 frames that share nothing.
#define ALWAYS (16ull << 20)
#define PER_BYTE 16u

uint64_t cs_expansion_limit(uint64_t recording_bytes) {
  return recording_bytes < (UINT64_MAX - ALWAYS) / PER_BYTE ? ALWAYS + PER_BYTE * recording_bytes
                                                            : UINT64_MAX;
}

// Returns the cost of one frame, in frames.
static uint32_t cost_of(const struct cs_profile *p, const struct cs_node *node) {
  size_t len = 0;
  uint32_t name = node->parent == 0 ? p->threads[node->frame].name : p->frames[node->frame].name;
  (void)cs_strings_get(&p->strings, name, &len);
  return 1 + (uint32_t)(len / CS_EXPANSION_FRAME_BYTES);
}

// For each node, the cost of its whole stack. Parents come before their children.
static uint64_t *costs_of(const struct cs_profile *p) {
  const struct cs_tree *tree = &p->tree;
  uint64_t *costs = cs_allocate(tree->count * sizeof *costs);
  for (size_t i = 1; i < tree->count; i++)
    costs[i] = costs[tree->nodes[i].parent] + cost_of(p, &tree->nodes[i]);
  return costs;
}

// Returns the cost of the frames of `node` that `before` does not share.
static uint64_t change(const struct cs_tree *tree, const uint64_t *costs, uint32_t before,
                       uint32_t node) {
  uint64_t own = costs[node];
  while (node != before) {
    uint32_t *later = node > before ? &node : &before;
    *later = tree->nodes[*later].parent;
  }
  return own - costs[node];
}

static uint64_t of_stacks(const struct cs_profile *p, const uint64_t *costs, uint64_t limit) {
  uint64_t sum = 0;
  for (size_t i = 1; i < p->tree.count && sum <= limit; i++)
    if (cs_profile_has_own(p, i)) sum += costs[i];
  for (size_t i = 0; i < p->labelled.count && sum <= limit; i++)
    sum += costs[p->labelled.items[i].node];
  return sum;
}

static uint64_t of_samples(const struct cs_profile *p, const uint64_t *costs, bool whole,
                           uint64_t limit) {
  uint64_t sum = 0;
  uint32_t before = 0;
  for (size_t i = 0; i < p->sample_count && sum <= limit; i++) {
    uint32_t leaf = p->samples[i].leaf;
    sum += whole ? costs[leaf] : change(&p->tree, costs, before, leaf);
    before = leaf;
  }
  return sum;
}

bool cs_expands_beyond(const struct cs_profile *p, enum cs_expansion expansion, uint64_t limit) {
  if (expansion == CS_EXPAND_NOTHING) return false;
  uint64_t *costs = costs_of(p);
  bool whole = expansion == CS_EXPAND_SAMPLES || !cs_mode(p->facts.mode)->timed;
  uint64_t sum = expansion == CS_EXPAND_STACKS ? of_stacks(p, costs, limit)
                                               : of_samples(p, costs, whole, limit);
  free(costs);
  return sum > limit;
}
