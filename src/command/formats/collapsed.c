// SPDX-License-Identifier: MIT
// Collapsed stacks: "root;...;leaf count", one line per distinct stack, all threads together, in
// order of their first appearance. ';' separates frames, so one in a name is written as ':'; line
// breaks become spaces. Two stacks that differ only in their thread are one line. Counts are what
// the samples stand for: nanoseconds, bytes or exceptions. One mode at a time. One thread.
// Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "formats/writers.h"
#include "profile/profile.h"

static void put_frame(const struct cs_profile *p, uint32_t frame, FILE *out) {
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

void cs_put_collapsed_stack(const struct cs_profile *p, const struct cs_tree *tree, uint32_t node,
                            uint32_t **path, size_t *capacity, FILE *out) {
  size_t depth = cs_tree_path(tree, node, path, capacity);
  if (depth == 0) cs_print(out, "[no frames]");
  for (size_t i = 0; i < depth; i++) {
    if (i > 0) cs_print(out, ";");
    put_frame(p, (*path)[i], out);
  }
}

bool cs_write_collapsed(const struct cs_profile_set *set, FILE *out) {
  const struct cs_profile *p = &set->profiles[0];
  struct cs_tree merged;
  cs_tree_init(&merged);
  uint32_t *path = NULL, *node = cs_tree_join(&merged, &p->tree, NULL, NULL);
  size_t capacity = 0;
  cs_tree_add_sums(&merged, &p->tree, node);
  for (uint32_t i = 1; i < merged.count; i++) {
    if (merged.nodes[i].weight == 0) continue;
    cs_put_collapsed_stack(p, &merged, i, &path, &capacity, out);
    cs_print(out, " %llu\n", (unsigned long long)merged.nodes[i].weight);
  }
  free(path);
  free(node);
  cs_tree_free(&merged);
  return fflush(out) == 0 && !ferror(out);
}
