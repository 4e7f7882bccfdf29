// SPDX-License-Identifier: MIT
// Putting two profiles into one tree. Invariant: a node's numbers are the sum of the numbers that
// both profiles have for its path; nothing is lost. One thread. Signal-safe: no.
#include "profile/diff.h"

#include <stdlib.h>
#include <string.h>

struct merge {
  struct cs_profile *into;
  struct cs_map threads;  // name's string id -> thread
};

static uint32_t merge_thread(struct merge *m, const struct cs_profile *from, uint32_t thread) {
  size_t len;
  const char *name = cs_strings_get(&from->strings, from->threads[thread].name, &len);
  uint32_t id = cs_strings_add(&m->into->strings, name, len);
  bool added;
  uint32_t at = cs_map_put(&m->threads, id, (uint32_t)m->into->thread_count, &added);
  return added ? cs_profile_thread(m->into, name, 0) : at;
}

static uint32_t merge_frame(struct cs_profile *into, const struct cs_profile *from,
                            uint32_t frame) {
  size_t len;
  const struct cs_profile_frame *f = &from->frames[frame];
  const char *name = cs_strings_get(&from->strings, f->name, &len);
  return cs_profile_frame(into, name, cs_profile_module(from, frame, &len), f->kind);
}

// Per node of `from`: its node of the merged tree.
static uint32_t *merge_tree(struct merge *m, const struct cs_profile *from) {
  uint32_t *map = cs_allocate(from->tree.count * sizeof *map);
  uint32_t *frame = cs_allocate((from->frame_count + 1) * sizeof *frame);
  uint32_t *thread = cs_allocate((from->thread_count + 1) * sizeof *thread);
  for (uint32_t i = 0; i < from->frame_count; i++) frame[i] = merge_frame(m->into, from, i);
  for (uint32_t i = 0; i < from->thread_count; i++) thread[i] = merge_thread(m, from, i);
  for (size_t i = 1; i < from->tree.count; i++) {
    const struct cs_node *node = &from->tree.nodes[i];
    uint32_t id = node->parent == 0 ? thread[node->frame] : frame[node->frame];
    uint32_t at = cs_tree_child(&m->into->tree, map[node->parent], id);
    // Both trees together may be too many nodes: what does not fit is its caller's own.
    map[i] = at == CS_TREE_FULL ? map[node->parent] : at;
  }
  free(frame);
  free(thread);
  return map;
}

static double ratio(double after, double before) {
  return before > 0 && after > 0 ? after / before : 1;
}

static void set_scale(struct cs_diff *d) {
  double samples[2] = {0, 0}, weight[2] = {0, 0};
  for (size_t i = 1; i < d->profile.tree.count; i++) {
    samples[0] += (double)d->samples[i];
    weight[0] += (double)d->weight[i];
    samples[1] += (double)d->profile.tree.nodes[i].samples;
    weight[1] += (double)d->profile.tree.nodes[i].weight;
  }
  d->samples_scale = d->weight_scale = 1;
  if (d->normalize == CS_NORMALIZE_TOTAL) {
    d->samples_scale = ratio(samples[1], samples[0]);
    d->weight_scale = ratio(weight[1], weight[0]);
  } else if (d->normalize == CS_NORMALIZE_RATE) {
    d->samples_scale = d->weight_scale =
        ratio((double)d->profile.facts.duration_ns, (double)d->before->duration_ns);
  }
}

void cs_diff_make(struct cs_diff *d, const struct cs_profile *before,
                  const struct cs_profile *after, enum cs_normalize normalize) {
  memset(d, 0, sizeof *d);
  cs_profile_init(&d->profile);
  struct merge m = {.into = &d->profile};
  uint32_t *new_nodes = merge_tree(&m, after), *old_nodes = merge_tree(&m, before);
  struct cs_tree *tree = &d->profile.tree;
  d->samples = cs_allocate(tree->count * sizeof *d->samples);
  d->weight = cs_allocate(tree->count * sizeof *d->weight);
  for (size_t i = 1; i < after->tree.count; i++) {
    tree->nodes[new_nodes[i]].samples += after->tree.nodes[i].samples;
    tree->nodes[new_nodes[i]].weight += after->tree.nodes[i].weight;
  }
  for (size_t i = 1; i < before->tree.count; i++) {
    d->samples[old_nodes[i]] += before->tree.nodes[i].samples;
    d->weight[old_nodes[i]] += before->tree.nodes[i].weight;
  }
  d->profile.facts = after->facts;
  d->profile.diff = d;
  d->before = &before->facts;
  d->normalize = normalize;
  set_scale(d);
  free(new_nodes);
  free(old_nodes);
  cs_map_free(&m.threads);
}

void cs_diff_free(struct cs_diff *d) {
  cs_profile_free(&d->profile);
  free(d->samples);
  free(d->weight);
}

const char *cs_normalize_token(enum cs_normalize normalize) {
  static const char *const tokens[] = {"total", "rate", "none"};
  return tokens[normalize];
}
