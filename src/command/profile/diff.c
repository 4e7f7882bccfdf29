// SPDX-License-Identifier: MIT
// Putting two profiles into one tree. Invariant: a node's numbers are the sum of the numbers that
// both profiles have for its path, but for idle threads that are to be left out. One thread.
// Signal-safe: no.
#include "profile/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/stop.h"
#include "profile/waits.h"

// Threads are matched by name: threads that share a name become one.
static uint32_t *join(struct cs_profile *into, struct cs_map *threads,
                      const struct cs_profile *from) {
  uint32_t *thread = cs_allocate(from->thread_count * sizeof *thread);
  for (uint32_t i = 0; i < from->thread_count; i++) {
    bool added;
    const char *name = cs_strings_get(&from->strings, from->threads[i].name, NULL);
    uint32_t id = cs_strings_add(&into->strings, name, strlen(name));
    thread[i] = cs_map_put(threads, id, (uint32_t)into->thread_count, &added);
    if (added) (void)cs_profile_thread(into, name, 0);
  }
  uint32_t *node = cs_profile_join(into, from, thread);
  free(thread);
  return node;
}

static double ratio(double after, double before) {
  return before > 0 && after > 0 ? after / before : 1;
}

static void set_scale(struct cs_diff *d) {
  double samples[2] = {0, 0}, weight[2] = {0, 0};
  for (size_t i = 1; i < d->profile.tree.count; i++) {
    samples[0] += (double)d->samples[i];
    weight[0] += (double)d->weight[i];
    samples[1] += (double)d->profile.tree.nodes[i].samples;
    weight[1] += (double)d->profile.tree.nodes[i].weight;
  }
  d->samples_scale = d->weight_scale = 1;
  if (d->normalize == CS_NORMALIZE_TOTAL) {
    d->samples_scale = ratio(samples[1], samples[0]);
    d->weight_scale = ratio(weight[1], weight[0]);
  } else if (d->normalize == CS_NORMALIZE_RATE) {
    d->samples_scale = d->weight_scale =
        ratio((double)d->profile.facts.duration_ns, (double)d->before->duration_ns);
  }
}

// Rates and plain amounts are compared as they are; the time that they are divided by has no error.
static void set_whole(struct cs_diff *d) {
  struct cs_measure *before = &d->whole.before, *after = &d->whole.after;
  d->whole.shares = d->normalize == CS_NORMALIZE_TOTAL;
  if (d->normalize == CS_NORMALIZE_NONE) before->whole = after->whole = 1;
  if (d->normalize == CS_NORMALIZE_RATE) {
    before->whole = (double)d->before->duration_ns / 1e9;
    after->whole = (double)d->profile.facts.duration_ns / 1e9;
  }
  for (size_t i = 1; i < d->profile.tree.count && d->whole.shares; i++) {
    before->whole += (double)d->weight[i];
    before->whole_squares += d->squares[i];
    after->whole += (double)d->profile.tree.nodes[i].weight;
    after->whole_squares += d->profile.tree.nodes[i].squares;
  }
}

struct cs_comparison cs_diff_compare(const struct cs_diff *d, enum cs_change_kind kind,
                                     const double part[2], const double squares[2]) {
  struct cs_comparison c = d->whole;
  c.kind = kind;
  c.before.part = part[0];
  c.before.part_squares = squares[0];
  c.after.part = part[1];
  c.after.part_squares = squares[1];
  return c;
}

static void add_after(struct cs_diff *d, const struct cs_tree *after, const uint32_t *nodes,
                      const bool *idle) {
  for (size_t i = 1; i < after->count; i++) {
    const struct cs_node *from = &after->nodes[i];
    struct cs_node *to = &d->profile.tree.nodes[nodes[i]];
    if (idle != NULL && idle[i]) {
      d->idle_weight[1] += from->weight;
      continue;
    }
    to->samples += from->samples;
    to->weight += from->weight;
    to->squares += from->squares;
  }
}

static void add_before(struct cs_diff *d, const struct cs_tree *before, const uint32_t *nodes,
                       const bool *idle) {
  for (size_t i = 1; i < before->count; i++) {
    if (idle != NULL && idle[i]) {
      d->idle_weight[0] += before->nodes[i].weight;
      continue;
    }
    d->samples[nodes[i]] += before->nodes[i].samples;
    d->weight[nodes[i]] += before->nodes[i].weight;
    d->squares[nodes[i]] += before->nodes[i].squares;
  }
}

void cs_diff_make(struct cs_diff *d, const struct cs_profile *before,
                  const struct cs_profile *after, enum cs_normalize normalize, bool leave_out) {
  memset(d, 0, sizeof *d);
  cs_profile_init(&d->profile);
  struct cs_map threads = {0};  // name's string id -> thread
  uint32_t *new_nodes = join(&d->profile, &threads, after);
  uint32_t *old_nodes = join(&d->profile, &threads, before);
  struct cs_tree *tree = &d->profile.tree;
  d->samples = cs_allocate(tree->count * sizeof *d->samples);
  d->weight = cs_allocate(tree->count * sizeof *d->weight);
  d->squares = cs_allocate(tree->count * sizeof *d->squares);
  bool *idle[2] = {leave_out ? cs_left_out_nodes(before) : NULL,
                   leave_out ? cs_left_out_nodes(after) : NULL};
  add_before(d, &before->tree, old_nodes, idle[0]);
  add_after(d, &after->tree, new_nodes, idle[1]);
  free(idle[0]);
  free(idle[1]);
  d->profile.facts = after->facts;
  d->profile.diff = d;
  d->before = &before->facts;
  d->normalize = normalize;
  set_scale(d);
  set_whole(d);
  free(new_nodes);
  free(old_nodes);
  cs_map_free(&threads);
}

bool cs_profile_has_own(const struct cs_profile *p, size_t node) {
  const struct cs_node *n = &p->tree.nodes[node];
  return n->samples > 0 || n->weight > 0 ||
         (p->diff != NULL && (p->diff->samples[node] > 0 || p->diff->weight[node] > 0));
}

// ---- What makes the recordings themselves different ----

static void put_engines(const struct cs_diff *d, const char *prefix, FILE *out) {
  enum cs_wire_engine_kind before = d->before->engine.used, after = d->profile.facts.engine.used;
  if (before == after || before == CS_WIRE_ENGINE_AUTO || after == CS_WIRE_ENGINE_AUTO) return;
  cs_print(out,
           "%sengines differ (%s, %s): shares may differ by some points for that alone; record "
           "both with the same --engine\n",
           prefix, cs_wire_engine_name(before), cs_wire_engine_name(after));
}

static void put_option(const char *option, bool before, bool after, const char *prefix, FILE *out) {
  if (before == after) return;
  cs_print(
      out,
      "%sonly the recording %s has the frames of %s: shares differ for that alone; record both "
      "with it, or without\n",
      prefix, before ? "before" : "after", option);
}

static void put_kernel(const struct cs_diff *d, const char *prefix, FILE *out) {
  bool before = false, after = false;
  for (size_t i = 1; i < d->profile.tree.count; i++) {
    const struct cs_node *node = &d->profile.tree.nodes[i];
    if (d->profile.frames[node->frame].kind != CS_KIND_KERNEL) continue;
    before |= d->samples[i] > 0;
    after |= node->samples > 0;
  }
  put_option("--kernel", before, after, prefix, out);
}

// Returns the percentage of walks that were cut at the depth limit.
static double cut_at_depth(const struct cs_facts *facts) {
  uint64_t cut = 0, all = facts->complete;
  for (size_t i = 0; i < facts->stop_count; i++) {
    all += facts->stops[i].count;
    if (strcmp(facts->stops[i].token, cs_stop_token(CS_STOP_DEPTH)) == 0)
      cut = facts->stops[i].count;
  }
  return all > 0 ? 100.0 * (double)cut / (double)all : 0;
}

static void put_depth(const struct cs_diff *d, const char *prefix, FILE *out) {
  double before = cut_at_depth(d->before), after = cut_at_depth(&d->profile.facts);
  if (before - after < 1 && after - before < 1) return;
  cs_print(
      out,
      "%s%.0f %% of the stacks before and %.0f %% of those after lack callers beyond the depth "
      "limit: totals differ for that alone; record both with the same, higher --depth\n",
      prefix, before, after);
}

void cs_diff_put_reasons(const struct cs_diff *d, const char *prefix, FILE *out) {
  put_engines(d, prefix, out);
  put_kernel(d, prefix, out);
  put_option("--inlined", d->before->inlined.wanted, d->profile.facts.inlined.wanted, prefix, out);
  put_depth(d, prefix, out);
}

void cs_diff_free(struct cs_diff *d) {
  cs_profile_free(&d->profile);
  free(d->samples);
  free(d->weight);
  free(d->squares);
}

const char *cs_normalize_token(enum cs_normalize normalize) {
  static const char *const tokens[] = {"total", "rate", "none"};
  return tokens[normalize];
}
