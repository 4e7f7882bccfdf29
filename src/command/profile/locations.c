// SPDX-License-Identifier: MIT
// From nodes to locations. Invariant: a location's frames are neighbours in some stack, and all but
// the last are inlined. One thread. Signal-safe: no.
#include "profile/locations.h"

#include <stdlib.h>
#include <string.h>

static uint32_t add(struct cs_locations *l, uint32_t frame, uint32_t outer) {
  uint32_t depth = outer == CS_NO_LOCATION ? 1 : l->items[outer].depth + 1;
  CS_APPEND(l->items, l->count, l->capacity, (struct cs_location){frame, outer, depth});
  l->lines += depth;
  return (uint32_t)l->count - 1;
}

void cs_locations_make(struct cs_locations *l, const struct cs_profile *p) {
  const struct cs_tree *tree = &p->tree;
  struct cs_map ids = {0};  // outer << 32 | frame -> location
  *l = (struct cs_locations){.of = cs_allocate(tree->count * sizeof *l->of)};
  for (uint32_t i = 0; i < p->frame_count; i++) (void)add(l, i, CS_NO_LOCATION);
  for (size_t i = 1; i < tree->count; i++) {
    const struct cs_node *node = &tree->nodes[i];
    bool added = false, in_stack = node->parent != 0 && tree->nodes[node->parent].parent != 0;
    l->of[i] = node->frame;
    if (!in_stack || !p->frames[node->frame].inlined) continue;
    uint32_t outer = l->of[node->parent];
    l->of[i] = cs_map_put(&ids, (uint64_t)outer << 32 | node->frame, (uint32_t)l->count, &added);
    if (added) (void)add(l, node->frame, outer);
  }
  cs_map_free(&ids);
}

void cs_locations_free(struct cs_locations *l) {
  free(l->items);
  free(l->of);
  memset(l, 0, sizeof *l);
}

uint32_t cs_locations_base(const struct cs_locations *l, const struct cs_tree *tree,
                           uint32_t node) {
  for (uint32_t depth = l->items[l->of[node]].depth; depth > 1; depth--)
    node = tree->nodes[node].parent;
  return node;
}
