// SPDX-License-Identifier: MIT
// Samples as spans of time. Invariant: a thread's spans do not overlap and their lengths are the
// samples' weights: where two would overlap, the later one begins later, and never is any time lost
// or added. One thread. Signal-safe: no.
#include "profile/timeline.h"

#include <stdlib.h>
#include <string.h>

struct item {
  uint64_t time_ns;
  uint32_t thread, index;
};

static int by_thread_and_time(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
  if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? -1 : 1;
  return x->index < y->index ? -1 : 1;
}

uint32_t *cs_node_threads(const struct cs_tree *tree) {
  uint32_t *thread = cs_allocate(tree->count * sizeof *thread);
  for (size_t i = 1; i < tree->count; i++) {
    const struct cs_node *node = &tree->nodes[i];
    thread[i] = node->parent == 0 ? node->frame : thread[node->parent];
  }
  return thread;
}

static struct item *sorted(const struct cs_profile *p, const uint32_t *thread) {
  struct item *items = cs_allocate(p->sample_count * sizeof *items);
  for (size_t i = 0; i < p->sample_count; i++) {
    items[i] = (struct item){p->samples[i].time_ns, thread[p->samples[i].leaf], (uint32_t)i};
  }
  cs_sort(items, p->sample_count, sizeof *items, by_thread_and_time);
  return items;
}

// A file may say anything: time that does not fit ends at the end of all time.
static struct cs_span span_of(const struct cs_profile_sample *s, uint64_t after) {
  uint64_t begin = s->time_ns > s->weight ? s->time_ns - s->weight : 0;
  if (begin < after) begin = after;
  uint64_t end = begin > UINT64_MAX - s->weight ? UINT64_MAX : begin + s->weight;
  return (struct cs_span){begin, end, s->leaf, 1, s->asleep};
}

static bool continues(const struct cs_span *last, const struct cs_span *next) {
  return last->end_ns == next->begin_ns && last->leaf == next->leaf && last->asleep == next->asleep;
}

void cs_timeline_make(struct cs_timeline *t, const struct cs_profile *p, bool merge) {
  t->thread = cs_node_threads(&p->tree);
  t->first = cs_allocate((p->thread_count + 1) * sizeof *t->first);
  t->spans = cs_allocate(p->sample_count * sizeof *t->spans);
  struct item *items = sorted(p, t->thread);
  size_t used = 0, next = 0;
  for (uint32_t thread = 0; thread < p->thread_count; thread++) {
    t->first[thread] = used;
    uint64_t after = 0;
    for (; next < p->sample_count && items[next].thread == thread; next++) {
      struct cs_span span = span_of(&p->samples[items[next].index], after);
      after = span.end_ns;
      struct cs_span *last = used > t->first[thread] ? &t->spans[used - 1] : NULL;
      if (merge && last != NULL && continues(last, &span)) {
        last->end_ns = span.end_ns;
        last->samples++;
      } else {
        t->spans[used++] = span;
      }
    }
  }
  t->first[p->thread_count] = used;
  free(items);
}

void cs_timeline_free(struct cs_timeline *t) {
  free(t->spans);
  free(t->first);
  free(t->thread);
}

size_t cs_node_path(const struct cs_tree *tree, uint32_t node, uint32_t **path, size_t *capacity) {
  size_t depth = 0;
  for (uint32_t n = node; n != 0 && tree->nodes[n].parent != 0; n = tree->nodes[n].parent) {
    *path = cs_grow(*path, depth, capacity, sizeof **path);
    (*path)[depth++] = tree->nodes[n].frame;
  }
  for (size_t i = 0; i < depth / 2; i++) {
    uint32_t other = (*path)[depth - 1 - i];
    (*path)[depth - 1 - i] = (*path)[i];
    (*path)[i] = other;
  }
  return depth;
}
