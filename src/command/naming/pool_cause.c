// SPDX-License-Identifier: MIT
// Finds the place where most workers of a starved pool wait: the innermost method of the program's
// own code, and the method of .NET that it has called. Invariant: the numbers in the sentence are
// those of one scan, the one in which most workers waited there. One thread. Signal-safe: no.
#include "naming/pool_cause.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/prefix.h"

enum { NONE = UINT32_MAX };

struct place {
  uint32_t at, in;  // frames of the profile, or NONE
  uint64_t all;     // workers that waited there, in all scans
  uint64_t scan_ns;
  uint32_t now, most;  // workers that waited there in the last scan, and in the one with the most
  const struct cs_rec_pool_wait *at_most;
};

struct search {
  const struct cs_profile *p;
  struct place *places;
  size_t count, capacity;
};

static bool is_managed(enum cs_profile_kind kind) {
  return kind == CS_KIND_USER || kind == CS_KIND_FRAMEWORK;
}

static bool begins(const struct cs_profile *p, uint32_t frame, const char *prefix) {
  size_t len;
  const char *name = cs_profile_method(p, frame, &len);
  return cs_has_prefix_in(name, len, prefix);
}

// Returns where the stack with this leaf waits. A stack without a method of the program's own waits
// in the innermost method that is not part of .NET's threading. Methods that await are not on the
// stack.
static struct place place_of(const struct cs_profile *p, uint32_t leaf) {
  const struct cs_node *nodes = p->tree.nodes;
  struct place place = {.at = NONE, .in = NONE}, other = place;
  for (uint32_t node = leaf; nodes[node].parent != 0; node = nodes[node].parent) {
    uint32_t frame = nodes[node].frame;
    if (!is_managed(p->frames[frame].kind)) continue;
    place.at = frame;
    if (p->frames[frame].kind == CS_KIND_USER) return place;
    if (other.at == NONE && !begins(p, frame, "System.Threading.")) other = place;
    place.in = frame;
  }
  return other;
}

static void add(struct search *s, uint32_t leaf, const struct cs_rec_pool_wait *wait) {
  struct place place = place_of(s->p, leaf);
  if (place.at == NONE) return;
  size_t i = 0;
  while (i < s->count && (s->places[i].at != place.at || s->places[i].in != place.in)) i++;
  if (i == s->count) CS_APPEND(s->places, s->count, s->capacity, place);
  struct place *known = &s->places[i];
  if (known->scan_ns != wait->time_ns) known->now = 0;
  known->scan_ns = wait->time_ns;
  known->now += wait->threads;
  known->all += wait->threads;
  if (known->now <= known->most) return;
  known->most = known->now;
  known->at_most = wait;
}

// "Task.Wait" of "System.Threading.Tasks.Task.Wait"; dots between '<' and '>' belong to arguments.
static const char *type_and_method(const char *name, size_t len) {
  unsigned depth = 0, dots = 0;
  for (const char *at = name + len; at > name; at--) {
    if (at[-1] == '>') depth++;
    if (at[-1] == '<' && depth > 0) depth--;
    if (at[-1] == '.' && depth == 0 && ++dots == 2) return at;
  }
  return name;
}

static void write_place(const struct cs_profile *p, const struct place *place, char *text,
                        size_t size) {
  size_t in_len = 0, at_len;
  const char *in = place->in != NONE ? cs_profile_method(p, place->in, &in_len) : NULL;
  if (in != NULL) in_len = strcspn(in, "(");  // without a signature
  const char *at = cs_profile_method(p, place->at, &at_len);
  const char *file = cs_profile_file(p, place->at, NULL);
  const char *from = in != NULL ? type_and_method(in, in_len) : "native code";
  int from_len = in != NULL ? (int)(in + in_len - from) : (int)strlen(from);
  int n = snprintf(text, size, "%.*s at %.*s", from_len, from, (int)at_len, at);
  if (file != NULL && n > 0 && (size_t)n < size)
    (void)snprintf(text + n, size - (size_t)n, " (%s:%u)", cs_file_of_source(file),
                   p->frames[place->at].line);
}

void cs_pool_cause_find(struct cs_profile *p, const struct cs_recording *rec,
                        const uint32_t *expanded, const uint32_t *node, uint32_t left_out) {
  struct search s = {.p = p};
  const struct place *cause = NULL;
  for (size_t i = 0; i < rec->pool_waits.count; i++) {
    const struct cs_rec_pool_wait *wait = &rec->pool_waits.items[i];
    uint32_t at = expanded != NULL ? expanded[wait->node] : wait->node;
    if (node[at] != left_out) add(&s, node[at], wait);
  }
  for (size_t i = 0; i < s.count; i++)
    if (cause == NULL || s.places[i].all > cause->all) cause = &s.places[i];
  if (cause != NULL) {
    struct cs_pool_cause *out = &p->facts.pool_cause;
    const struct cs_rec_pool_wait *most = cause->at_most;
    *out = (struct cs_pool_cause){cause->most, most->workers, most->queued, most->time_ns, ""};
    if (out->workers < out->waiting) out->workers = out->waiting;
    write_place(p, cause, out->place, sizeof out->place);
  }
  free(s.places);
}
