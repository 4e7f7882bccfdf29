// SPDX-License-Identifier: MIT
// Chains of awaits, merged: equal ones are one chain with a count. Pure data; one thread.
#pragma once

#include <stdio.h>

#include "base/base.h"
#include "util/map.h"

// Something that awaits or is awaited.
struct cs_async_step {
  const char *name;    // "Shop.Cart.LoadAsync", "Task.Delay", "TaskCompletionSource"
  const char *class;   // of an object that is not a method's; else ""
  const char *module;  // of a method: its file; else ""
  const char *note;    // "runs", for instance; "": none
  const char *file;    // of the await, as the compiler was given it; "": unknown
  uint32_t line;
};

struct cs_async_node {
  uint32_t step, parent, first_child, next;  // children, and the root's, are a list
  uint64_t count;                            // chains that lead through here
  uint64_t object;                           // the first one's
  bool same;                                 // all chains lead through that one object
  bool cycle;                                // further down, it awaits itself
  uint64_t old;                // chains that end here, of Activities that began long ago:
  uint64_t first_ns, last_ns;  // when these began
};
#define CS_ASYNC_NO_NODE UINT32_MAX

struct cs_async_tree {          // zeroed to begin with
  struct cs_async_node *nodes;  // the first is the root, which is not a step
  size_t count, capacity;
  struct cs_async_step *steps;
  size_t step_count, step_capacity;
  struct cs_strings texts;  // for each step, all of its texts, by which it is found
  struct cs_map by_place;   // children, by parent and step
  char **owned;
  size_t owned_count, owned_capacity;
};

uint32_t cs_async_root(struct cs_async_tree *tree);
// Returns the step with these texts, which are copied.
uint32_t cs_async_step(struct cs_async_tree *tree, const struct cs_async_step *step);
// Counts a chain that leads from `parent` to a step through an object. Returns the step's node.
uint32_t cs_async_add(struct cs_async_tree *tree, uint32_t parent, uint32_t step, uint64_t object);
// Notes at the node where a chain ends that its Activity began then (CLOCK_REALTIME).
#define CS_ASYNC_OLD_NS 10000000000u  // ago
void cs_async_note_old(struct cs_async_tree *tree, uint32_t node, uint64_t began_ns);
// Marks the node and all nodes above it.
void cs_async_mark_cycle(struct cs_async_tree *tree, uint32_t node);
// Cycles first, then by count, then by name. To be called once, when the tree is complete.
void cs_async_sort(struct cs_async_tree *tree);
// Returns whether a step of the node or below has the text in its name, class or file. An empty
// text is always there.
bool cs_async_has(const struct cs_async_tree *tree, uint32_t node, const char *text);
// Those of Activities that began long ago, in a few lines, from the program's own methods on.
void cs_async_print_old(FILE *out, const struct cs_async_tree *tree, const char *text,
                        uint64_t now_ns);
// All operations with that text as lines for people. Returns how many groups were printed.
uint32_t cs_async_print(FILE *out, const struct cs_async_tree *tree, const char *text);
void cs_async_tree_free(struct cs_async_tree *tree);
