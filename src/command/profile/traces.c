// SPDX-License-Identifier: MIT
// Grouping by trace. Invariant: sums are moved, never copied: the tree comes to what it came to
// before. One thread. Signal-safe: no.
#include "profile/traces.h"

#include <stdio.h>
#include <stdlib.h>

#include "profile/timeline.h"

struct grouping {
  struct cs_profile *p;
  uint32_t *thread;  // per node that was there before
  uint32_t *path;    // of the stack at hand
  size_t path_capacity;
  struct cs_map moved;  // node << 32 | label -> where its samples are now
};

// All spans of a trace have one.
static uint32_t trace_frame(struct cs_profile *p, uint32_t number) {
  struct cs_label label = cs_labels_get(p->labels, number);
  struct cs_label_text text = cs_label_in_hex(&label);
  char name[64];
  (void)snprintf(name, sizeof name, "trace %s", text.trace[0] != '\0' ? text.trace : "unknown");
  return cs_profile_frame(p, name, "", CS_KIND_TYPE);
}

// The same stack under its trace. CS_TREE_FULL: there is no room.
static uint32_t copy_stack(struct grouping *g, uint32_t node, uint32_t label) {
  struct cs_tree *tree = &g->p->tree;
  size_t depth = cs_tree_path(tree, node, &g->path, &g->path_capacity);
  uint32_t at = cs_tree_child(tree, 0, g->thread[node]);
  at = cs_tree_child(tree, at, trace_frame(g->p, label));
  for (size_t i = 0; i < depth && at != CS_TREE_FULL; i++) at = cs_tree_child(tree, at, g->path[i]);
  return at;
}

static void move_sum(struct grouping *g, struct cs_label_sum *sum) {
  bool added;
  uint32_t from = sum->node, to = copy_stack(g, from, sum->label);
  if (to == CS_TREE_FULL) return;
  struct cs_node *nodes = g->p->tree.nodes;
  // Squares are not kept by label: these samples have their part of them.
  double part = nodes[from].weight > 0 ? (double)sum->weight / (double)nodes[from].weight : 0;
  double squares = nodes[from].squares * part;
  nodes[from].squares -= squares;
  nodes[to].squares += squares;
  nodes[from].samples -= sum->samples;
  nodes[from].weight -= sum->weight;
  nodes[to].samples += sum->samples;
  nodes[to].weight += sum->weight;
  (void)cs_map_put(&g->moved, (uint64_t)from << 32 | sum->label, to, &added);
  sum->node = to;
}

// Nodes that have lost all that they had are left out.
static void prune(struct cs_profile *p) {
  uint32_t *now = cs_allocate(p->tree.count * sizeof *now);
  cs_tree_prune(&p->tree, now);
  for (size_t i = 0; i < p->labelled.count; i++)
    p->labelled.items[i].node = now[p->labelled.items[i].node];
  for (size_t i = 0; i < p->sample_count; i++) p->samples[i].leaf = now[p->samples[i].leaf];
  free(now);
}

void cs_group_by_trace(struct cs_profile *p) {
  if (p->labelled.count == 0) return;
  struct grouping g = {.p = p, .thread = cs_node_threads(&p->tree)};
  for (size_t i = 0; i < p->labelled.count; i++) move_sum(&g, &p->labelled.items[i]);
  for (size_t i = 0; i < p->sample_count; i++) {
    struct cs_profile_sample *s = &p->samples[i];
    (void)cs_map_get(&g.moved, (uint64_t)s->leaf << 32 | s->label, &s->leaf);
  }
  prune(p);
  cs_label_sums_sort(&p->labelled);
  cs_map_free(&g.moved);
  free(g.thread);
  free(g.path);
}
