// SPDX-License-Identifier: MIT
// A window's profile: a recording that has only the nodes, frames and threads which the window's
// samples need, and otherwise shares the tables of the whole. Invariant: each sample is in exactly
// one window. One thread. Signal-safe: no.
#include "recording/window.h"

#include <stdlib.h>
#include <string.h>

#include "profile/traces.h"
#include "recording/resolve.h"

static struct cs_window_sum sum_of(const struct cs_node *node) {
  return (struct cs_window_sum){node->samples, node->weight};
}

// What the window has of a node.
static struct cs_window_sum difference(const struct cs_window *w, size_t node) {
  struct cs_window_sum sum = sum_of(&w->rec->tree.nodes[node]);
  if (node < w->before_count) {
    sum.samples -= w->before[node].samples;
    sum.weight -= w->before[node].weight;
  }
  return sum;
}

static struct cs_window_sum labelled_difference(const struct cs_window *w, size_t i) {
  const struct cs_label_sum *whole = &w->rec->labelled.items[i];
  struct cs_window_sum sum = {whole->samples, whole->weight};
  if (i < w->before_labelled_count) {
    sum.samples -= w->before_labelled[i].samples;
    sum.weight -= w->before_labelled[i].weight;
  }
  return sum;
}

// ---- The part of a recording that the window's samples need ----

struct part {
  const struct cs_window *w;
  struct cs_recording rec;
  uint32_t *node, *frame, *thread;  // the whole's index -> the part's index + 1; 0: not in it
};

static uint32_t part_frame(struct part *p, uint32_t frame) {
  if (p->frame[frame] == 0) {
    p->rec.frames[p->rec.frame_count++] = p->w->rec->frames[frame];
    p->frame[frame] = (uint32_t)p->rec.frame_count;
  }
  return p->frame[frame] - 1;
}

// Its own root: no two nodes have one.
static uint32_t part_root(struct part *p, uint32_t root) {
  uint32_t thread = p->w->rec->roots[root].thread;
  if (p->thread[thread] == 0) {
    p->rec.threads[p->rec.thread_count++] = p->w->rec->threads[thread];
    p->thread[thread] = (uint32_t)p->rec.thread_count;
  }
  p->rec.roots[p->rec.root_count] =
      (struct cs_rec_root){p->thread[thread] - 1, p->w->rec->roots[root].mode};
  return (uint32_t)p->rec.root_count++;
}

// Marks the nodes that have samples, and their callers: those come before them.
static uint64_t mark(struct part *p) {
  const struct cs_tree *tree = &p->w->rec->tree;
  uint64_t samples = 0;
  for (size_t i = tree->count; i-- > 1;) {
    uint64_t own = difference(p->w, i).samples;
    samples += own;
    if (own == 0 && p->node[i] == 0) continue;
    p->node[i] = 1;
    p->node[tree->nodes[i].parent] = 1;
  }
  return samples;
}

static void copy_nodes(struct part *p) {
  const struct cs_tree *tree = &p->w->rec->tree;
  cs_tree_init(&p->rec.tree);
  p->node[0] = 1;
  for (size_t i = 1; i < tree->count; i++) {
    const struct cs_node *node = &tree->nodes[i];
    if (p->node[i] == 0) continue;
    uint32_t frame = node->parent == 0 ? part_root(p, node->frame) : part_frame(p, node->frame);
    // Never CS_TREE_FULL: no more nodes than the whole has.
    uint32_t own = cs_tree_child(&p->rec.tree, p->node[node->parent] - 1, frame);
    struct cs_window_sum sum = difference(p->w, i);
    p->rec.tree.nodes[own].samples = sum.samples;
    p->rec.tree.nodes[own].weight = sum.weight;
    p->node[i] = own + 1;
  }
}

static void copy_labelled(struct part *p) {
  for (size_t i = 0; i < p->w->rec->labelled.count; i++) {
    const struct cs_label_sum *whole = &p->w->rec->labelled.items[i];
    struct cs_window_sum sum = labelled_difference(p->w, i);
    if (sum.samples == 0) continue;
    struct cs_label_sum *own =
        cs_label_sums_at(&p->rec.labelled, p->node[whole->node] - 1, whole->label);
    own->samples = sum.samples;
    own->weight = sum.weight;
  }
}

static void open_part(struct part *p) {
  const struct cs_recording *whole = p->w->rec;
  p->rec = *whole;
  p->node = cs_allocate((whole->tree.count + 1) * sizeof *p->node);
  p->frame = cs_allocate((whole->frame_count + 1) * sizeof *p->frame);
  p->thread = cs_allocate((whole->thread_count + 1) * sizeof *p->thread);
  p->rec.frames = cs_allocate((whole->frame_count + 1) * sizeof *p->rec.frames);
  p->rec.threads = cs_allocate((whole->thread_count + 1) * sizeof *p->rec.threads);
  p->rec.roots = cs_allocate((whole->root_count + 1) * sizeof *p->rec.roots);
  p->rec.frame_count = p->rec.thread_count = p->rec.root_count = p->rec.sample_count = 0;
  p->rec.labelled = (struct cs_label_sums){0};
}

// All else is the whole's.
static void close_part(struct part *p) {
  free(p->node);
  free(p->frame);
  free(p->thread);
  free(p->rec.frames);
  free(p->rec.threads);
  free(p->rec.roots);
  cs_label_sums_free(&p->rec.labelled);
}

// ---- Windows ----

static void push_mode(const struct cs_window *w, const struct part *p, enum cs_wire_mode mode,
                      uint64_t now_ns) {
  struct cs_profile profile;
  const struct cs_view *view = w->view;
  const struct cs_resolve_opts opts = {.native = view->native,
                                       .signatures = view->signatures,
                                       .lines = w->rec->lines && !view->no_lines,
                                       .raw_names = view->raw_names,
                                       .async_callers = view->async_callers && !view->raw_names};
  cs_profile_init(&profile);
  cs_resolve(&p->rec, mode, &opts, &profile);
  if (view->by_trace) cs_group_by_trace(&profile);
  struct cs_facts *f = &profile.facts;
  f->start_ns += w->begin_ns;
  f->duration_ns = now_ns - w->begin_ns;
  f->samples = f->weight = f->labelled = 0;
  for (size_t i = 1; i < profile.tree.count; i++) {
    f->samples += profile.tree.nodes[i].samples;
    f->weight += profile.tree.nodes[i].weight;
  }
  for (size_t i = 0; i < profile.labelled.count; i++)
    f->labelled += profile.labelled.items[i].samples;
  if (f->samples > 0) cs_push_add(view->push, &profile);
  cs_profile_free(&profile);
}

static void push_part(const struct cs_window *w, struct part *p, uint64_t now_ns) {
  copy_nodes(p);
  copy_labelled(p);
  for (unsigned mode = CS_WIRE_MODE_CPU; mode < CS_WIRE_MODES; mode++)
    if ((w->rec->meta.modes & CS_WIRE_MODE_BIT(mode)) != 0)
      push_mode(w, p, (enum cs_wire_mode)mode, now_ns);
  cs_tree_free(&p->rec.tree);
}

static void remember(struct cs_window *w) {
  const struct cs_tree *tree = &w->rec->tree;
  while (w->before_count < tree->count)
    w->before = cs_grow(w->before, w->before_count++, &w->before_capacity, sizeof *w->before);
  for (size_t i = 0; i < tree->count; i++) w->before[i] = sum_of(&tree->nodes[i]);
  const struct cs_label_sums *labelled = &w->rec->labelled;
  while (w->before_labelled_count < labelled->count)
    w->before_labelled = cs_grow(w->before_labelled, w->before_labelled_count++,
                                 &w->before_labelled_capacity, sizeof *w->before_labelled);
  for (size_t i = 0; i < labelled->count; i++)
    w->before_labelled[i] =
        (struct cs_window_sum){labelled->items[i].samples, labelled->items[i].weight};
}

static void forget(struct cs_window *w) {
  cs_recording_forget_samples(w->rec);
  w->before_count = w->before_labelled_count = 0;
}

void cs_window_turn(struct cs_window *w, uint64_t now_ns, bool last) {
  if (now_ns - w->begin_ns < w->every_ns && !last) return;
  struct part part = {.w = w};
  // Before the tables are shared, because it moves them.
  cs_name_frames_from(w->rec, w->named);
  w->named = w->rec->frame_count;
  open_part(&part);
  uint64_t samples = mark(&part);
  if (samples > 0) push_part(w, &part, now_ns);
  close_part(&part);
  if (cs_view_wants_whole(w->view))
    remember(w);
  else
    forget(w);
  w->begin_ns = now_ns;
}

void cs_window_free(struct cs_window *w) {
  free(w->before);
  free(w->before_labelled);
  memset(w, 0, sizeof *w);
}
