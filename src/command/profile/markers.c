// SPDX-License-Identifier: MIT
// Markers. Invariant: all profiles of a set have the same threads. One thread. Signal-safe: no.
#include "profile/markers.h"

#include <stdlib.h>
#include <string.h>

#include "profile/timeline.h"

static int by_thread_and_time(const void *a, const void *b) {
  const struct cs_marker *x = a, *y = b;
  return CS_ORDER(x->thread, y->thread) ?: CS_ORDER(x->begin_ns, y->begin_ns) ?:
         CS_ORDER(x->index, y->index);
}

// A marker without a type is named after its mode.
static void name_marker(struct cs_marker *m, const struct cs_profile *p, uint32_t leaf) {
  const struct cs_node *node = &p->tree.nodes[leaf];
  m->name = cs_mode_of(&p->facts)->token;
  m->len = strlen(m->name);
  if (node->parent != 0 && p->frames[node->frame].kind == CS_KIND_TYPE)
    m->name = cs_strings_get(&p->strings, p->frames[node->frame].name, &m->len);
}

static size_t add(struct cs_marker *to, size_t count, const struct cs_profile *p) {
  const struct cs_mode *mode = cs_mode_of(&p->facts);
  uint32_t *thread = cs_node_threads(&p->tree);
  for (size_t i = 0; i < p->sample_count && !mode->timed; i++) {
    const struct cs_profile_sample *s = &p->samples[i];
    struct cs_marker *m = &to[count];
    uint64_t length = mode->unit == CS_UNIT_NS ? s->weight : 0;
    m->begin_ns = s->time_ns > length ? s->time_ns - length : 0;
    m->end_ns = m->begin_ns > UINT64_MAX - length ? UINT64_MAX : m->begin_ns + length;
    m->profile = p;
    m->weight = s->weight;
    m->leaf = s->leaf;
    m->thread = thread[s->leaf];
    m->index = (uint32_t)count++;
    name_marker(m, p, s->leaf);
  }
  free(thread);
  return count;
}

void cs_markers_make(struct cs_markers *m, const struct cs_profile_set *set) {
  size_t count = 0, at = 0, threads = set->profiles[0].thread_count;
  for (size_t i = 0; i < set->count; i++) count += set->profiles[i].sample_count;
  m->all = cs_allocate((count + 1) * sizeof *m->all);
  m->first = cs_allocate((threads + 1) * sizeof *m->first);
  count = 0;
  for (size_t i = 0; i < set->count; i++) count = add(m->all, count, &set->profiles[i]);
  cs_sort(m->all, count, sizeof *m->all, by_thread_and_time);
  for (uint32_t thread = 0; thread <= threads; thread++) {
    while (at < count && m->all[at].thread < thread) at++;
    m->first[thread] = at;
  }
}

void cs_markers_free(struct cs_markers *m) {
  free(m->all);
  free(m->first);
}
