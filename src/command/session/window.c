// SPDX-License-Identifier: MIT
// A window's profile: a recording with only those nodes and threads that the window's samples need,
// which shares all other tables with the whole. Invariant: each sample is in exactly one window.
// One thread. Signal-safe: no.
#include "session/window.h"
#include "naming/naming.h"

#include <stdlib.h>
#include <string.h>

#include "push/push.h"

static struct cs_window_sum sum_of(const struct cs_node *node) {
  return (struct cs_window_sum){node->samples, node->weight};
}

// Returns a node's sums in this window.
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
  uint32_t *node;    // by node of the whole: the part's; 0: none
  uint32_t *thread;  // by thread of the whole: the part's index + 1; 0: none
};

// Returns the number of samples.
static uint64_t copy_nodes(struct part *p) {
  const struct cs_tree *whole = &p->w->rec->tree;
  struct cs_tree *tree = &p->rec.tree;
  uint64_t samples = 0;
  *tree = (struct cs_tree){.count = whole->count, .capacity = whole->count};
  tree->nodes = cs_allocate(whole->count * sizeof *tree->nodes);
  for (size_t i = 0; i < whole->count; i++) {
    struct cs_window_sum sum = difference(p->w, i);
    tree->nodes[i] = whole->nodes[i];
    tree->nodes[i].samples = sum.samples;
    tree->nodes[i].weight = sum.weight;
    tree->nodes[i].squares = 0;  // not known of a window
    samples += sum.samples;
  }
  cs_tree_prune(tree, p->node);
  return samples;
}

static void copy_threads(struct part *p) {
  const struct cs_recording *whole = p->w->rec;
  for (size_t i = 1; i < p->rec.tree.count; i++) {
    const struct cs_node *node = &p->rec.tree.nodes[i];
    if (node->parent != 0) continue;
    const struct cs_rec_root *root = &whole->roots[node->frame];
    uint32_t *thread = &p->thread[root->thread];
    if (*thread == 0) {
      p->rec.threads[p->rec.thread_count++] = whole->threads[root->thread];
      *thread = (uint32_t)p->rec.thread_count;
    }
    p->rec.roots[node->frame] = (struct cs_rec_root){*thread - 1, root->mode};
  }
}

static void copy_labelled(struct part *p) {
  for (size_t i = 0; i < p->w->rec->labelled.count; i++) {
    const struct cs_label_sum *whole = &p->w->rec->labelled.items[i];
    struct cs_window_sum sum = labelled_difference(p->w, i);
    if (sum.samples == 0) continue;
    struct cs_label_sum *to =
        cs_label_sums_at(&p->rec.labelled, p->node[whole->node], whole->label);
    to->samples = sum.samples;
    to->weight = sum.weight;
  }
}

static void open_part(struct part *p) {
  const struct cs_recording *whole = p->w->rec;
  p->rec = *whole;
  p->node = cs_allocate(whole->tree.count * sizeof *p->node);
  p->thread = cs_allocate(whole->thread_count * sizeof *p->thread);
  p->rec.threads = cs_allocate(whole->thread_count * sizeof *p->rec.threads);
  p->rec.roots = cs_allocate(whole->root_count * sizeof *p->rec.roots);
  p->rec.thread_count = p->rec.sample_count = 0;
  p->rec.labelled = (struct cs_label_sums){0};
}

// All other tables belong to the whole.
static void close_part(struct part *p) {
  free(p->node);
  free(p->thread);
  free(p->rec.threads);
  free(p->rec.roots);
  cs_tree_free(&p->rec.tree);
  cs_label_sums_free(&p->rec.labelled);
}

// ---- Windows ----

// Replaces the whole's facts by those of the window.
static void set_facts(const struct cs_window *w, struct cs_profile *profile, uint64_t now_ns) {
  struct cs_facts *f = &profile->facts;
  f->start_ns += w->begin_ns;
  f->duration_ns = now_ns - w->begin_ns;
  f->samples = f->weight = f->labelled = 0;
  for (size_t i = 1; i < profile->tree.count; i++) {
    f->samples += profile->tree.nodes[i].samples;
    f->weight += profile->tree.nodes[i].weight;
  }
  for (size_t i = 0; i < profile->labelled.count; i++)
    f->labelled += profile->labelled.items[i].samples;
}

static void push_part(const struct cs_window *w, struct part *p, uint64_t now_ns) {
  struct cs_profile profiles[CS_WIRE_MODES];
  copy_threads(p);
  copy_labelled(p);
  size_t count = cs_view_resolve(w->view, &p->rec, w->rec->meta.modes, false, true, profiles);
  for (size_t i = 0; i < count; i++) {
    set_facts(w, &profiles[i], now_ns);
    if (profiles[i].facts.samples > 0) cs_push_add(w->view->push, &profiles[i]);
    cs_profile_free(&profiles[i]);
  }
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

void cs_window_advance(struct cs_window *w, uint64_t now_ns, bool last) {
  if (now_ns - w->begin_ns < w->every_ns && !last) return;
  struct part part = {.w = w};
  // Naming moves the tables, so it comes before they are shared.
  cs_name_frames_from(w->rec, w->named);
  w->named = w->rec->frame_count;
  open_part(&part);
  if (copy_nodes(&part) > 0) push_part(w, &part, now_ns);
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
