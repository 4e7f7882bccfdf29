// SPDX-License-Identifier: MIT
// A call tree: node 0 is the root; a node is (parent, frame). Parents come before their children.
#pragma once

#include "util/map.h"

// About 64 bytes a node with its place in the hash table: 512 MiB at the limit, where a recording
// of 100,000 distinct stacks of 50 frames needs well under 5 million nodes.
#define CS_TREE_MAX_NODES (8u << 20)
#define CS_TREE_FULL UINT32_MAX

struct cs_tree {
  struct cs_node {
    uint32_t parent, frame;
    uint64_t samples, weight;  // that ended here (the node is the leaf)
    double squares;            // of the weights of these samples, added up
  } * nodes;
  size_t count, capacity;
  struct cs_map children;  // parent << 32 | frame -> node
};

void cs_tree_init(struct cs_tree *tree);
// Returns the child of `parent` that is `frame`, made if need be, or CS_TREE_FULL at the limit.
uint32_t cs_tree_child(struct cs_tree *tree, uint32_t parent, uint32_t frame);
// Drops the nodes in which, and below which, no sample has ended. `moved`: per node, where it is
// now; room for tree->count of them.
void cs_tree_prune(struct cs_tree *tree, uint32_t *moved);
// Puts the nodes of `from` into `to`, without their sums, and returns for each where it is there;
// the caller frees that. `first` and `frame` say what the numbers of its first level and of all
// other frames are in `to`; a NULL `first` makes one node of the first level, node 1, a NULL
// `frame` changes no number. When `to` is full, a node is where its caller is.
uint32_t *cs_tree_join(struct cs_tree *to, const struct cs_tree *from, const uint32_t *first,
                       const uint32_t *frame);
// Adds the sums of `from` to where its nodes are.
void cs_tree_add_sums(struct cs_tree *to, const struct cs_tree *from, const uint32_t *node);
// The frames that lead to a node, those below the first level, outermost first; returns how many.
// `path` grows.
size_t cs_tree_path(const struct cs_tree *tree, uint32_t node, uint32_t **path, size_t *capacity);
// Returns whether the same frame is among the node's callers (recursion).
bool cs_tree_is_nested(const struct cs_tree *tree, uint32_t node);
void cs_tree_free(struct cs_tree *tree);
