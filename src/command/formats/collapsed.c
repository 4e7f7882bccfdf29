// SPDX-License-Identifier: MIT
// Collapsed stacks: "root;...;leaf count", one line per distinct stack, all threads together, in
// order of their first appearance. ';' separates frames, so one in a name is written as ':'; line
// breaks become spaces. Two stacks that differ only in their thread are one line. Counts are what
// the samples stand for: nanoseconds, bytes or exceptions. One mode at a time. One thread.
// Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "formats/writers.h"
#include "profile/profile.h"
#include "util/text.h"

#define MERGED_ROOT 0u

// The tree without its thread level.
static void merge_threads(const struct cs_profile *p, struct cs_tree *merged) {
  cs_tree_init(merged);
  uint32_t *map = cs_allocate(p->tree.count * sizeof *map);
  for (size_t i = 1; i < p->tree.count; i++) {
    const struct cs_node *node = &p->tree.nodes[i];
    // Never full: it has no more nodes than the tree that it is made of.
    map[i] =
        node->parent == 0 ? MERGED_ROOT : cs_tree_child(merged, map[node->parent], node->frame);
    merged->nodes[map[i]].weight += node->weight;
  }
  free(map);
}

void cs_put_collapsed_frame(const struct cs_profile *p, uint32_t frame, FILE *out) {
  size_t len;
  const char *name = cs_strings_get(&p->strings, p->frames[frame].name, &len);
  for (const char *semicolon; (semicolon = memchr(name, ';', len)) != NULL;) {
    size_t before = (size_t)(semicolon - name);
    cs_put_plain(out, name, before);
    cs_print(out, ":");
    name += before + 1;
    len -= before + 1;
  }
  cs_put_plain(out, name, len);
}

bool cs_write_collapsed(const struct cs_profile_set *set, FILE *out) {
  const struct cs_profile *p = &set->profiles[0];
  struct cs_tree merged;
  merge_threads(p, &merged);
  uint32_t *path = NULL;
  size_t capacity = 0;
  for (uint32_t i = 0; i < merged.count; i++) {
    if (merged.nodes[i].weight == 0) continue;
    size_t depth = 0;
    for (uint32_t n = i; n != MERGED_ROOT; n = merged.nodes[n].parent) {
      path = cs_grow(path, depth, &capacity, sizeof *path);
      path[depth++] = merged.nodes[n].frame;
    }
    if (depth == 0) cs_print(out, "[no frames]");
    while (depth > 0) {
      cs_put_collapsed_frame(p, path[--depth], out);
      if (depth > 0) cs_print(out, ";");
    }
    cs_print(out, " %llu\n", (unsigned long long)merged.nodes[i].weight);
  }
  free(path);
  cs_tree_free(&merged);
  return fflush(out) == 0 && !ferror(out);
}
