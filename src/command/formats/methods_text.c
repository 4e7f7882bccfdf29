// SPDX-License-Identifier: MIT
// The hottest frames as a table: shares of what the samples stand for, and the number of samples of
// the frame itself. The total of a recursive frame counts each stack once. One thread. Signal-safe:
// no.
#include <inttypes.h>
#include <stdlib.h>

#include "base/print.h"
#include "formats/methods.h"
#include "formats/writers.h"
#include "profile/waits.h"

struct cs_hot *cs_hot_frames(const struct cs_profile *p, const bool *idle, uint64_t *left_out) {
  const struct cs_tree *tree = &p->tree;
  struct cs_hot *hot = cs_allocate(p->frame_count * sizeof *hot);
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
  const struct cs_hot *x = a, *y = b;
  return CS_ORDER(y->self, x->self) ?: CS_ORDER(y->total, x->total) ?: CS_ORDER(x->frame, y->frame);
}

// ---- Causes ----

// In a mode of events a stack ends in what has happened: a type, a wait, a collection. The cause is
// the nearest own code, or, if there is none, the nearest other frame.
struct cause {
  uint32_t frame, by;
  uint64_t weight;
};

enum { MOST_CAUSES = 2 };

static bool is_event(const struct cs_profile *p, uint32_t frame) {
  return p->frames[frame].kind == CS_KIND_TYPE;
}

static int by_frame(const void *a, const void *b) {
  const struct cause *x = a, *y = b;
  return CS_ORDER(x->frame, y->frame) ?: CS_ORDER(x->by, y->by);
}

static int by_frame_and_weight(const void *a, const void *b) {
  const struct cause *x = a, *y = b;
  return CS_ORDER(x->frame, y->frame) ?: CS_ORDER(y->weight, x->weight) ?: CS_ORDER(x->by, y->by);
}

// Of all frames that are not own code, what has caused them: by frame, the most frequent first.
static struct cause *find_causes(const struct cs_profile *p, size_t *count) {
  const struct cs_tree *tree = &p->tree;
  struct cause *all = cs_allocate(tree->count * sizeof *all);
  uint32_t *own = cs_allocate(2 * tree->count * sizeof *own), *other = own + tree->count;
  size_t found = 0;
  own[0] = other[0] = UINT32_MAX;
  for (size_t i = 1; i < tree->count; i++) {
    const struct cs_node *node = &tree->nodes[i];
    bool thread = node->parent == 0, user = !thread && p->frames[node->frame].kind == CS_KIND_USER;
    own[i] = user ? node->frame : own[node->parent];
    other[i] = !thread && !is_event(p, node->frame) ? node->frame : other[node->parent];
    uint32_t above = other[node->parent], by = own[i] != UINT32_MAX ? own[i] : above;
    if (!thread && !user && node->weight > 0 && by != UINT32_MAX)
      all[found++] = (struct cause){node->frame, by, node->weight};
  }
  free(own);
  cs_sort(all, found, sizeof *all, by_frame);
  *count = 0;
  for (size_t i = 0; i < found; i++) {
    struct cause *last = *count > 0 ? &all[*count - 1] : NULL;
    if (last != NULL && by_frame(last, &all[i]) == 0)
      last->weight += all[i].weight;
    else
      all[(*count)++] = all[i];
  }
  cs_sort(all, *count, sizeof *all, by_frame_and_weight);
  return all;
}

// What has caused less than a twentieth of the row is not worth a line.
static void put_causes(const struct cs_profile *p, const struct cause *causes, size_t count,
                       const struct cs_hot *row, double all, const char *prefix, FILE *out) {
  size_t shown = 0, more = 0;
  size_t i = CS_FIRST_NOT(k, 0, count, causes[k].frame < row->frame);
  for (; i < count && causes[i].frame == row->frame; i++) {
    if (shown == MOST_CAUSES || (shown > 0 && causes[i].weight < row->self / 20)) {
      more++;
      continue;
    }
    shown++;
    cs_print(out, "%s         %5.1f %% by ", prefix, 100.0 * (double)causes[i].weight / all);
    cs_print(out, "%s\n", cs_strings_get(&p->strings, p->frames[causes[i].by].name, NULL));
  }
  if (more > 0) cs_print(out, "%s                 and by %zu more\n", prefix, more);
}

// ---- The table ----

void cs_write_top(const struct cs_profile *p, size_t limit, const char *prefix, FILE *out) {
  if (p->facts.samples == 0) return;
  bool *idle = cs_left_out_nodes(p);
  uint64_t left_out = 0;
  struct cs_hot *hot = cs_hot_frames(p, idle, &left_out);
  double off = cs_points_off(p, idle);
  free(idle);
  cs_sort(hot, p->frame_count, sizeof *hot, by_self);
  const struct cs_mode *mode = cs_mode_of(&p->facts);
  uint64_t counted = p->facts.weight > left_out ? p->facts.weight - left_out : 0;
  double all = counted > 0 ? (double)counted : 1;
  if (left_out > 0) cs_print(out, "%s", prefix);
  cs_put_left_out(out, mode, left_out);
  cs_print(out, "%s   self   total  samples  method, by its share", prefix);
  if (cs_facts_are_by_count(&p->facts))
    cs_print(out, " (not chosen at random by .NET 9: may be far off)");
  else if (!cs_facts_have_all(&p->facts))
    cs_print(out, " (+-%.1f points)", off);
  cs_print(out, " of ");
  cs_put_whole(out, mode, counted);
  cs_print(out, p->facts.inlined.wanted ? "\n" : "; what is inlined is its caller's\n");
  size_t count = 0;
  struct cause *causes = mode->timed || p->facts.event != 0 ? NULL : find_causes(p, &count);
  for (size_t i = 0; i < limit && i < p->frame_count && hot[i].samples > 0; i++) {
    size_t len;
    const char *name = cs_strings_get(&p->strings, p->frames[hot[i].frame].name, &len);
    cs_print(out, "%s%5.1f %%  %5.1f %%  %7" PRIu64 "  ", prefix, 100.0 * (double)hot[i].self / all,
             100.0 * (double)hot[i].total / all, hot[i].samples);
    cs_print(out, "%.*s", (int)len, name);
    cs_print(out, "\n");
    put_causes(p, causes, count, &hot[i], all, prefix, out);
  }
  free(causes);
  free(hot);
}
