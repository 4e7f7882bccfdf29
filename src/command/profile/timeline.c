// SPDX-License-Identifier: MIT
// Samples as spans of time. Invariant: a thread's spans do not overlap and their lengths are the
// samples' weights: where two would overlap, the later one begins later, and never is any time lost
// or added. One thread. Signal-safe: no.
#include "profile/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "util/map.h"

struct key {
  const struct cs_profile_sample *samples;
  const uint32_t *thread;  // per node
};

static int by_thread_and_time(const void *a, const void *b, void *context) {
  const struct key *key = context;
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  const struct cs_profile_sample *p = &key->samples[x], *q = &key->samples[y];
  uint32_t first = key->thread[p->leaf], second = key->thread[q->leaf];
  return CS_ORDER(first, second) ?: CS_ORDER(p->time_ns, q->time_ns) ?: CS_ORDER(x, y);
}

uint32_t *cs_samples_in_order(const struct cs_profile *p, const uint32_t *thread) {
  uint32_t *order = cs_allocate(p->sample_count * sizeof *order);
  for (uint32_t i = 0; i < p->sample_count; i++) order[i] = i;
  qsort_r(order, p->sample_count, sizeof *order, by_thread_and_time,
          &(struct key){p->samples, thread});
  return order;
}

uint32_t *cs_node_threads(const struct cs_tree *tree) {
  uint32_t *thread = cs_allocate(tree->count * sizeof *thread);
  for (size_t i = 1; i < tree->count; i++) {
    const struct cs_node *node = &tree->nodes[i];
    thread[i] = node->parent == 0 ? node->frame : thread[node->parent];
  }
  return thread;
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
  uint32_t *order = cs_samples_in_order(p, t->thread);
  size_t used = 0, next = 0;
  for (uint32_t thread = 0; thread < p->thread_count; thread++) {
    t->first[thread] = used;
    uint64_t after = 0;
    for (; next < p->sample_count; next++) {
      const struct cs_profile_sample *sample = &p->samples[order[next]];
      if (t->thread[sample->leaf] != thread) break;
      struct cs_span span = span_of(sample, after);
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
  free(order);
}

void cs_timeline_free(struct cs_timeline *t) {
  free(t->spans);
  free(t->first);
  free(t->thread);
}
