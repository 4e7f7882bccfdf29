// SPDX-License-Identifier: MIT
// Merging a set. Invariant: all profiles of a set are of one recording, so a thread has the same
// number in each. One thread. Signal-safe: no.
#include "profile/merge.h"

#include <stdlib.h>

static void merge_labels(struct cs_merged *m, const struct cs_profile_set *set,
                         uint32_t *const *nodes) {
  struct cs_label_sums *all = &m->profile.labelled;
  m->profile.labels = set->profiles[0].labels;
  for (size_t i = 0; i < set->count; i++) {
    const struct cs_label_sums *own = &set->profiles[i].labelled;
    if (own->count > 0) {
      m->endpoints = set->profiles[i].endpoints;
      m->statuses = set->profiles[i].statuses;
    }
    for (size_t k = 0; k < own->count; k++) {
      struct cs_label_sum *sum =
          cs_label_sums_at(all, nodes[i][own->items[k].node], own->items[k].label);
      sum->samples += own->items[k].samples;
      sum->weight += own->items[k].weight;
    }
  }
  m->label_samples = cs_allocate(all->count * m->count * sizeof *m->label_samples);
  m->label_weight = cs_allocate(all->count * m->count * sizeof *m->label_weight);
}

// The merged label sums must be sorted.
static void sum_labels(struct cs_merged *m, size_t i, const struct cs_label_sums *own,
                       const uint32_t *node) {
  for (size_t k = 0; k < own->count; k++) {
    const struct cs_label_sum *from = &own->items[k];
    size_t at = cs_label_sums_find(&m->profile.labelled, node[from->node], from->label);
    m->label_samples[at * m->count + i] += from->samples;
    m->label_weight[at * m->count + i] += from->weight;
  }
}

void cs_merge(struct cs_merged *m, const struct cs_profile_set *set) {
  const struct cs_profile *first = &set->profiles[0];
  uint32_t **nodes = m->node = cs_allocate(set->count * sizeof *nodes);
  uint32_t *thread = cs_allocate(first->thread_count * sizeof *thread);
  m->endpoints = NULL;
  m->statuses = NULL;
  cs_profile_init(&m->profile);
  for (size_t i = 0; i < first->thread_count; i++) {
    const struct cs_profile_thread *t = &first->threads[i];
    const char *name = cs_strings_get(&first->strings, t->name, NULL);
    thread[i] = cs_profile_thread(&m->profile, name, t->tid);
  }
  for (size_t i = 0; i < set->count; i++) {
    nodes[i] = cs_profile_join(&m->profile, &set->profiles[i], thread);
    cs_tree_add_sums(&m->profile.tree, &set->profiles[i].tree, nodes[i]);
  }
  free(thread);
  m->profile.facts = first->facts;
  m->count = set->count;
  m->samples = cs_allocate(m->profile.tree.count * m->count * sizeof *m->samples);
  m->weight = cs_allocate(m->profile.tree.count * m->count * sizeof *m->weight);
  merge_labels(m, set, nodes);
  cs_label_sums_sort(&m->profile.labelled);
  for (size_t i = 0; i < set->count; i++) {
    const struct cs_tree *tree = &set->profiles[i].tree;
    for (size_t n = 1; n < tree->count; n++) {
      m->samples[nodes[i][n] * m->count + i] += tree->nodes[n].samples;
      m->weight[nodes[i][n] * m->count + i] += tree->nodes[n].weight;
    }
    sum_labels(m, i, &set->profiles[i].labelled, nodes[i]);
  }
}

void cs_merged_free(struct cs_merged *m) {
  for (size_t i = 0; i < m->count; i++) free(m->node[i]);
  free(m->node);
  cs_profile_free(&m->profile);
  free(m->samples);
  free(m->weight);
  free(m->label_samples);
  free(m->label_weight);
}
