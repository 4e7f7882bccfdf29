// SPDX-License-Identifier: MIT
// Where the methods that a search finds were inlined, as far as the recording knows. One thread.
// Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "formats/methods.h"

enum { MOST_PAIRS = 8 };

struct pair {
  uint32_t method, host;  // in `names`
  uint64_t weight;        // below it; a stack that has the pair twice counts once
};

struct pairs {
  struct cs_strings names;
  struct cs_map ids;  // of pairs, from 1
  struct pair *all;
  size_t count, capacity;
};

static uint32_t add(struct pairs *p, const char *method, const char *host) {
  struct pair pair = {cs_strings_add(&p->names, method, strlen(method)),
                      cs_strings_add(&p->names, host, strlen(host)), 0};
  bool added;
  uint32_t id =
      cs_map_put(&p->ids, (uint64_t)pair.method << 32 | pair.host, (uint32_t)p->count + 1, &added);
  if (!added) return id;
  CS_APPEND(p->all, p->count, p->capacity, pair);
  return id;
}

static void find(const struct cs_profile *p, const struct cs_search *search, struct pairs *pairs) {
  const struct cs_tree *tree = &p->tree;
  uint64_t *total = cs_allocate(tree->count * sizeof *total);
  uint32_t *pair = cs_allocate(tree->count * sizeof *pair);
  for (size_t i = 0; i < p->inlining_count; i++) {
    const char *method = cs_strings_get(&p->strings, p->inlining[i].method, NULL);
    if (cs_search_matches(search, method))
      (void)add(pairs, method, cs_strings_get(&p->strings, p->inlining[i].into, NULL));
  }
  for (size_t i = tree->count; i-- > 1;) {
    total[i] += tree->nodes[i].weight;
    total[tree->nodes[i].parent] += total[i];
  }
  for (size_t i = 1; i < tree->count; i++) {
    const struct cs_node *node = &tree->nodes[i];
    if (node->parent == 0 || !p->frames[node->frame].inlined) continue;
    const char *method = cs_profile_method(p, node->frame, NULL);
    if (!cs_search_matches(search, method)) continue;
    uint32_t up = node->parent;
    while (tree->nodes[up].parent != 0 && p->frames[tree->nodes[up].frame].inlined)
      up = tree->nodes[up].parent;
    if (tree->nodes[up].parent == 0) continue;
    pair[i] = add(pairs, method, cs_profile_method(p, tree->nodes[up].frame, NULL));
    bool nested = false;
    for (uint32_t at = node->parent; at != 0 && !nested; at = tree->nodes[at].parent)
      nested = pair[at] == pair[i];
    if (!nested) pairs->all[pair[i] - 1].weight += total[i];
  }
  free(total);
  free(pair);
}

static int by_weight(const void *a, const void *b) {
  const struct pair *x = a, *y = b;
  return CS_ORDER(y->weight, x->weight) ?: CS_ORDER(x->method, y->method) ?:
         CS_ORDER(x->host, y->host);
}

bool cs_put_inlined_hits(const struct cs_profile *p, const struct cs_search *search,
                         const char *prefix, FILE *out) {
  struct pairs pairs = {0};
  double all = p->facts.weight > 0 ? (double)p->facts.weight : 1;
  find(p, search, &pairs);
  cs_sort(pairs.all, pairs.count, sizeof *pairs.all, by_weight);
  for (size_t i = 0; i < pairs.count && i < MOST_PAIRS; i++) {
    cs_print(out, "%s  inlined: ", prefix);
    cs_print(out, "%s", cs_strings_get(&pairs.names, pairs.all[i].method, NULL));
    cs_print(out, " into ");
    cs_print(out, "%s", cs_strings_get(&pairs.names, pairs.all[i].host, NULL));
    if (pairs.all[i].weight > 0)
      cs_print(out, " (%.1f %%)\n", 100.0 * (double)pairs.all[i].weight / all);
    else
      cs_print(out, " (no samples of it)\n");
  }
  if (pairs.count > MOST_PAIRS)
    cs_print(out, "%s  inlined: %zu more pairs\n", prefix, pairs.count - MOST_PAIRS);
  cs_strings_free(&pairs.names);
  cs_map_free(&pairs.ids);
  free(pairs.all);
  return pairs.count > 0;
}
