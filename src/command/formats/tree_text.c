// SPDX-License-Identifier: MIT
// The call tree as text, hottest first: the total share, the own share, samples, and the frame,
// indented by one blank per level. Shares are of what samples stand for (weight). Nodes below a
// thousandth of the total are summed up in one line. Idle threads are left out. One thread.
// Signal-safe: no.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "formats/writers.h"
#include "profile/waits.h"

#define SMALL 1000u
#define MAX_INDENT 256

struct sums {
  uint64_t weight, samples;
  uint32_t child, next;  // nodes, 0: none; children hottest first
};

struct writer {
  const struct cs_profile *p;
  struct sums *sums;  // per node
  FILE *out;
};

static const struct sums *compared;

static int by_weight(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return CS_ORDER(compared[y].weight, compared[x].weight) ?: CS_ORDER(x, y);
}

// Lists the children of each node, hottest first: all nodes are sorted once, coldest first, and put
// in front of their parents' lists.
static struct sums *add_up(const struct cs_tree *tree, const bool *idle, uint64_t *left_out) {
  struct sums *sums = cs_allocate(tree->count * sizeof *sums);
  uint32_t *order = cs_allocate(tree->count * sizeof *order);
  for (uint32_t i = (uint32_t)tree->count; i-- > 0;) {
    order[i] = i;
    bool counts = idle == NULL || !idle[i];
    if (counts) sums[i].weight += tree->nodes[i].weight;
    if (counts) sums[i].samples += tree->nodes[i].samples;
    if (!counts) *left_out += tree->nodes[i].weight;
    if (i == 0) break;
    sums[tree->nodes[i].parent].weight += sums[i].weight;
    sums[tree->nodes[i].parent].samples += sums[i].samples;
  }
  compared = sums;
  cs_sort(order, tree->count, sizeof *order, by_weight);
  for (size_t n = tree->count; n-- > 0;) {
    uint32_t i = order[n];
    if (i == 0 || (idle != NULL && sums[i].samples == 0 && sums[i].weight == 0)) continue;
    sums[i].next = sums[tree->nodes[i].parent].child;
    sums[tree->nodes[i].parent].child = i;
  }
  free(order);
  return sums;
}

static void put_share(const struct writer *w, uint64_t weight) {
  uint64_t all = w->sums[0].weight;
  cs_print(w->out, "%6.2f %%", all > 0 ? 100.0 * (double)weight / (double)all : 0.0);
}

// One blank per level up to MAX_INDENT, then the level as a number: a recording of a few kilobytes
// may be so deep that the blanks alone would be gigabytes.
static void put_indent(const struct writer *w, size_t depth) {
  if (depth <= MAX_INDENT)
    cs_print(w->out, "%*s", (int)depth, "");
  else
    cs_print(w->out, "%*s(%zu) ", MAX_INDENT, "", depth);
}

static void put_node(const struct writer *w, uint32_t node, size_t depth) {
  const struct cs_node *n = &w->p->tree.nodes[node];
  bool thread = n->parent == 0;
  uint32_t string = thread ? w->p->threads[n->frame].name : w->p->frames[n->frame].name;
  size_t len;
  const char *name = cs_strings_get(&w->p->strings, string, &len);
  put_share(w, w->sums[node].weight);
  cs_print(w->out, "  ");
  put_share(w, n->weight);
  cs_print(w->out, "  %8" PRIu64 "  ", w->sums[node].samples);
  put_indent(w, depth);
  cs_print(w->out, "%.*s", (int)len, name);
  if (thread && w->p->threads[n->frame].tid != 0)
    cs_print(w->out, len > 0 ? " (%" PRIu32 ")" : "thread (%" PRIu32 ")",
             w->p->threads[n->frame].tid);
  cs_print(w->out, "\n");
}

// One line for `node` and the siblings after it.
static void put_rest(const struct writer *w, uint32_t node, size_t depth) {
  uint64_t count = 0, weight = 0, samples = 0;
  for (; node != 0; node = w->sums[node].next, count++) {
    weight += w->sums[node].weight;
    samples += w->sums[node].samples;
  }
  put_share(w, weight);
  cs_print(w->out, "            %10" PRIu64 "  ", samples);
  put_indent(w, depth);
  cs_print(w->out, "... %" PRIu64 " more\n", count);
}

static void put_tree(const struct writer *w) {
  const struct cs_tree *tree = &w->p->tree;
  uint32_t node = w->sums[0].child;
  size_t depth = 0;
  while (node != 0) {
    bool small = w->sums[node].weight < w->sums[0].weight / SMALL;
    if (small)
      put_rest(w, node, depth);
    else
      put_node(w, node, depth);
    if (!small && w->sums[node].child != 0) {
      node = w->sums[node].child;
      depth++;
      continue;
    }
    // After a small node all siblings are smaller still.
    uint32_t next = small ? 0 : w->sums[node].next;
    while (next == 0 && depth > 0) {
      node = tree->nodes[node].parent;
      next = w->sums[node].next;
      depth--;
    }
    node = next;
  }
}

static void put_head(const struct cs_profile *p, FILE *out) {
  const struct cs_mode *mode = cs_mode_of(&p->facts);
  cs_put_samples(out, &p->facts);
  cs_print(out, " in %.1f s (%s", (double)p->facts.duration_ns / 1e9, mode->token);
  if (mode->timed && p->facts.hz > 0) cs_print(out, ", %" PRIu32 " Hz", p->facts.hz);
  cs_print(out, "%s%s)", p->facts.runtime[0] != '\0' ? ", .NET " : "", p->facts.runtime);
  if (mode->weight != NULL) {
    cs_print(out, ": ");
    cs_put_whole(out, mode, p->facts.weight);
  }
  if (p->facts.labelled > 0) cs_print(out, ", %" PRIu64 " with a label", p->facts.labelled);
  cs_print(out, "\n\n");
}

bool cs_write_text(const struct cs_profile_set *set, FILE *out) {
  const char *program = set->profiles[0].facts.program;
  cs_print(out, "%s", program);
  for (size_t i = 0; i < set->count; i++) {
    const struct cs_profile *p = &set->profiles[i];
    bool *idle = cs_left_out_nodes(p);
    uint64_t left_out = 0;
    struct writer w = {p, add_up(&p->tree, idle, &left_out), out};
    free(idle);
    cs_print(out, "\n");
    put_head(p, out);
    cs_put_left_out(out, cs_mode_of(&p->facts), left_out);
    cs_print(out, "   total      self   samples  frame (shares of %s%s)\n",
             cs_mode_of(&p->facts)->whole,
             p->facts.inlined.wanted ? "" : "; what is inlined is its caller's");
    put_tree(&w);
    free(w.sums);
  }
  return fflush(out) == 0 && !ferror(out);
}
