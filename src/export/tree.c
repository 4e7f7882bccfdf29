// SPDX-License-Identifier: MIT
// The call tree. Invariant: nodes[i].parent < i for every i > 0, which lets sums and rewrites be
// plain loops. One thread. Signal-safe: no.
#include "export/tree.h"

#include <stdlib.h>
#include <string.h>

void cs_tree_init(struct cs_tree *tree) {
  memset(tree, 0, sizeof *tree);
  tree->nodes = cs_grow(NULL, 0, &tree->capacity, sizeof *tree->nodes);
  tree->nodes[0] = (struct cs_node){0, UINT32_MAX, 0, 0};
  tree->count = 1;
}

uint32_t cs_tree_child(struct cs_tree *tree, uint32_t parent, uint32_t frame) {
  uint64_t key = (uint64_t)parent << 32 | frame;
  uint32_t node;
  if (tree->count >= CS_TREE_MAX_NODES) {
    return cs_map_get(&tree->children, key, &node) ? node : CS_TREE_FULL;
  }
  bool added;
  node = cs_map_put(&tree->children, key, (uint32_t)tree->count, &added);
  if (!added) return node;
  tree->nodes = cs_grow(tree->nodes, tree->count, &tree->capacity, sizeof *tree->nodes);
  tree->nodes[tree->count++] = (struct cs_node){parent, frame, 0, 0};
  return node;
}

void cs_tree_free(struct cs_tree *tree) {
  free(tree->nodes);
  cs_map_free(&tree->children);
  memset(tree, 0, sizeof *tree);
}
