// SPDX-License-Identifier: MIT
// Grouping by trace or endpoint. Invariant: sums are moved, never copied: the tree comes to what it
// came to before. One thread. Signal-safe: no.
#include "profile/traces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/timeline.h"

struct grouping {
  struct cs_profile *p;
  const char *const *endpoints;  // by label; NULL: by trace
  uint32_t *thread;              // per node that was there before
  uint32_t *path;                // of the stack at hand
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

// Returns whether a frame is the delegate of that endpoint.
static bool is_delegate(const struct cs_profile *p, uint32_t frame, const char *endpoint) {
  const char *name = cs_strings_get(&p->strings, p->frames[frame].name, NULL);
  size_t prefix = strlen(CS_ENDPOINT_PREFIX);
  return strncmp(name, CS_ENDPOINT_PREFIX, prefix) == 0 && strcmp(name + prefix, endpoint) == 0;
}

// Returns the first frame of the path that is shown.
static size_t first_of(const struct grouping *g, size_t depth, uint32_t label) {
  if (g->endpoints == NULL) return 0;
  size_t i = 0;
  while (i < depth && !is_delegate(g->p, g->path[i], g->endpoints[label])) i++;
  return i < depth ? i + 1 : 0;
}

void cs_route_name(const struct cs_profile *p, uint32_t label, char *out, size_t size) {
  unsigned status = p->statuses[label];
  if (status >= 400)
    (void)snprintf(out, size, "%s [%u]", p->endpoints[label], status);
  else
    (void)snprintf(out, size, "%s", p->endpoints[label]);
}

static uint32_t group_frame(struct grouping *g, uint32_t label) {
  char name[4096];
  if (g->endpoints == NULL) return trace_frame(g->p, label);
  cs_route_name(g->p, label, name, sizeof name);
  return cs_profile_frame(g->p, name, "", CS_KIND_USER);
}

// The same stack under its group. CS_TREE_FULL: there is no room.
static uint32_t copy_stack(struct grouping *g, uint32_t node, uint32_t label) {
  struct cs_tree *tree = &g->p->tree;
  size_t depth = cs_tree_path(tree, node, &g->path, &g->path_capacity);
  uint32_t at = cs_tree_child(tree, 0, g->thread[node]);
  at = cs_tree_child(tree, at, group_frame(g, label));
  for (size_t i = first_of(g, depth, label); i < depth && at != CS_TREE_FULL; i++)
    at = cs_tree_child(tree, at, g->path[i]);
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

static void group(struct cs_profile *p, const char *const *endpoints) {
  if (p->labelled.count == 0) return;
  struct grouping g = {.p = p, .endpoints = endpoints, .thread = cs_node_threads(&p->tree)};
  for (size_t i = 0; i < p->labelled.count; i++)
    if (endpoints == NULL || endpoints[p->labelled.items[i].label][0] != '\0')
      move_sum(&g, &p->labelled.items[i]);
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

void cs_group_by_trace(struct cs_profile *p) {
  group(p, NULL);
}

void cs_group_by_endpoint(struct cs_profile *p) {
  group(p, p->endpoints);
}
