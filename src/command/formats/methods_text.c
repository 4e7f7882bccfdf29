// SPDX-License-Identifier: MIT
// The hottest frames as a table: shares of what the samples stand for, and the number of samples of
// the frame itself. The total of a recursive frame counts each stack once. One thread. Signal-safe:
// no.
#include <inttypes.h>
#include <stdlib.h>

#include "base/print.h"
#include "formats/writers.h"
#include "profile/profile.h"
#include "profile/waits.h"

struct hot {
  uint32_t frame;
  uint64_t self, total, samples;  // of its own
};

// idle: nodes that do not count; NULL: all do. *left_out: what those have.
static struct hot *count_frames(const struct cs_profile *p, const bool *idle, uint64_t *left_out) {
  const struct cs_tree *tree = &p->tree;
  struct hot *hot = cs_allocate(p->frame_count * sizeof *hot);
  uint64_t *total = cs_allocate(tree->count * sizeof *total);
  for (uint32_t i = 0; i < p->frame_count; i++) hot[i].frame = i;
  for (uint32_t i = (uint32_t)tree->count; i-- > 1;) {
    const struct cs_node *node = &tree->nodes[i];
    bool counts = idle == NULL || !idle[i];
    if (counts)
      total[i] += node->weight;
    else
      *left_out += node->weight;
    total[node->parent] += total[i];
    if (node->parent == 0) continue;  // a thread
    hot[node->frame].self += counts ? node->weight : 0;
    hot[node->frame].samples += counts ? node->samples : 0;
    if (!cs_tree_is_nested(tree, i)) hot[node->frame].total += total[i];
  }
  free(total);
  return hot;
}

static int by_self(const void *a, const void *b) {
  const struct hot *x = a, *y = b;
  if (x->self != y->self) return x->self < y->self ? 1 : -1;
  if (x->total != y->total) return x->total < y->total ? 1 : -1;
  return x->frame < y->frame ? -1 : x->frame > y->frame;
}

void cs_write_top(const struct cs_profile *p, size_t limit, const char *prefix, FILE *out) {
  if (p->facts.samples == 0) return;
  bool *idle = cs_idle_nodes(p);
  uint64_t left_out = 0;
  struct hot *hot = count_frames(p, idle, &left_out);
  free(idle);
  cs_sort(hot, p->frame_count, sizeof *hot, by_self);
  const struct cs_mode *mode = cs_mode_of(&p->facts);
  uint64_t counted = p->facts.weight > left_out ? p->facts.weight - left_out : 0;
  double all = counted > 0 ? (double)counted : 1;
  if (left_out > 0) {
    cs_print(out, "%s", prefix);
    cs_put_amount(out, mode->unit, left_out);
    cs_print(out,
             " of idle threads (the pool's, timers, sockets, ...) are left out of the table\n");
  }
  cs_print(out, "%s   self   total  samples  method, by its share of ", prefix);
  cs_put_whole(out, mode, counted);
  cs_print(out, p->facts.inlined.wanted ? "\n" : "; what is inlined is its caller's\n");
  for (size_t i = 0; i < limit && i < p->frame_count && hot[i].samples > 0; i++) {
    size_t len;
    const char *name = cs_strings_get(&p->strings, p->frames[hot[i].frame].name, &len);
    cs_print(out, "%s%5.1f %%  %5.1f %%  %7" PRIu64 "  ", prefix, 100.0 * (double)hot[i].self / all,
             100.0 * (double)hot[i].total / all, hot[i].samples);
    cs_print(out, "%.*s", (int)len, name);
    cs_print(out, "\n");
  }
  free(hot);
}
