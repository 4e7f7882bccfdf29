// SPDX-License-Identifier: MIT
// The call tree. Invariant: nodes[i].parent < i for every i > 0, which lets sums and rewrites be
// plain loops. One thread. Signal-safe: no.
#include "profile/tree.h"

#include <stdlib.h>
#include <string.h>

void cs_tree_init(struct cs_tree *tree) {
  memset(tree, 0, sizeof *tree);
  CS_APPEND(tree->nodes, tree->count, tree->capacity, (struct cs_node){0, UINT32_MAX, 0, 0, 0});
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
  CS_APPEND(tree->nodes, tree->count, tree->capacity, (struct cs_node){parent, frame, 0, 0, 0});
  return node;
}

// A parent comes before its children, so what is kept moves to the front in the same order.
void cs_tree_prune(struct cs_tree *tree, uint32_t *moved) {
  struct cs_node *nodes = tree->nodes;
  uint64_t *below = cs_allocate(tree->count * sizeof *below);
  for (size_t i = tree->count; i-- > 1;) {
    below[i] += nodes[i].samples;
    below[nodes[i].parent] += below[i];
  }
  cs_map_free(&tree->children);
  uint32_t kept = 1;
  moved[0] = 0;
  for (size_t i = 1; i < tree->count; i++) {
    moved[i] = 0;
    if (below[i] == 0) continue;
    bool added;
    struct cs_node node = nodes[i];
    node.parent = moved[node.parent];
    (void)cs_map_put(&tree->children, (uint64_t)node.parent << 32 | node.frame, kept, &added);
    moved[i] = kept;
    nodes[kept++] = node;
  }
  tree->count = kept;
  free(below);
}

uint32_t *cs_tree_join(struct cs_tree *to, const struct cs_tree *from, const uint32_t *first,
                       const uint32_t *frame) {
  uint32_t *node = cs_allocate(from->count * sizeof *node);
  if (first == NULL) (void)cs_tree_child(to, 0, 0);
  for (size_t i = 1; i < from->count; i++) {
    const struct cs_node *n = &from->nodes[i];
    uint32_t id = n->frame;
    if (n->parent == 0)
      id = first != NULL ? first[id] : 0;
    else if (frame != NULL)
      id = frame[id];
    uint32_t at = cs_tree_child(to, node[n->parent], id);
    node[i] = at == CS_TREE_FULL ? node[n->parent] : at;
  }
  return node;
}

void cs_tree_add_sums(struct cs_tree *to, const struct cs_tree *from, const uint32_t *node) {
  for (size_t i = 1; i < from->count; i++) {
    to->nodes[node[i]].samples += from->nodes[i].samples;
    to->nodes[node[i]].weight += from->nodes[i].weight;
    to->nodes[node[i]].squares += from->nodes[i].squares;
  }
}

size_t cs_tree_path(const struct cs_tree *tree, uint32_t node, uint32_t **path, size_t *capacity) {
  size_t depth = 0;
  for (uint32_t n = node; n != 0 && tree->nodes[n].parent != 0; n = tree->nodes[n].parent)
    CS_APPEND(*path, depth, *capacity, tree->nodes[n].frame);
  for (size_t i = 0; i < depth / 2; i++) {
    uint32_t other = (*path)[depth - 1 - i];
    (*path)[depth - 1 - i] = (*path)[i];
    (*path)[i] = other;
  }
  return depth;
}

bool cs_tree_is_nested(const struct cs_tree *tree, uint32_t node) {
  const struct cs_node *nodes = tree->nodes;
  uint32_t caller = nodes[node].parent;
  while (nodes[caller].parent != 0 && nodes[caller].frame != nodes[node].frame)
    caller = nodes[caller].parent;
  return nodes[caller].parent != 0;
}

void cs_tree_free(struct cs_tree *tree) {
  free(tree->nodes);
  cs_map_free(&tree->children);
  memset(tree, 0, sizeof *tree);
}
