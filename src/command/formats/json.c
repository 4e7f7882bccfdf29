// SPDX-License-Identifier: MIT
// A recording for scripts, as flat arrays: one object for each recorded mode in "modes". `parent`
// is relative (node - parent), which saves digits. Nodes are in tree order, parents first; node 0,
// the root, is left out, and the tree's first level are the threads. Time is in microseconds
// ("selfUs"), other units as they are ("selfWeight"). "marks" are events on the timeline: [begin,
// duration, text], in microseconds. In a comparison each mode has "diff", or "only" if one of the
// recordings lacks it. One thread. Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "formats/json.h"
#include "formats/writers.h"

static void put_stops(struct cs_json_writer *j, const struct cs_facts *f) {
  cs_json_open(j, "stops", '[');
  for (size_t i = 0; i < f->stop_count; i++) {
    cs_json_open(j, NULL, '[');
    CS_JSON_TEXTS(j, {NULL, f->stops[i].token}, {NULL, f->stops[i].text});
    cs_json_uint(j, NULL, f->stops[i].count);
    cs_json_close(j, "]");
  }
  cs_json_close(j, "]");
}

static void put_engine(struct cs_json_writer *j, const struct cs_facts *f) {
  const struct cs_engine_facts *e = &f->engine;
  if (e->used == CS_WIRE_ENGINE_AUTO) return;
  cs_json_open(j, "engine", '{');
  CS_JSON_TEXTS(j, {"requested", cs_wire_engine_name(e->requested)},
                {"used", cs_wire_engine_name(e->used)});
  cs_json_fixed(j, "rate", cs_rate_reached(f), 1);
  CS_JSON_UINTS(j, {"cpuNs", e->cpu_ns}, {"unsampledNs", cs_unsampled_ns(f)}, {"others", e->others},
                {"without", e->without});
  CS_JSON_TEXTS(j, {"why", e->why}, {"unseen", e->unseen});
  cs_json_close(j, "}");
}

static void put_mode(struct cs_json_writer *j, const struct cs_facts *f) {
  const struct cs_mode *mode = cs_mode_of(f);
  const char *const samples[2] = {"sample", "samples"};
  CS_JSON_TEXTS(j, {"mode", mode->token}, {"unit", cs_unit_name(mode->unit)});
  cs_json_open(j, "what", '[');
  for (int i = 0; i < 2; i++) cs_json_text(j, NULL, (f->part ? samples : mode->what)[i]);
  cs_json_close(j, "]");
  cs_json_uint(j, "weight", f->weight);
  cs_json_text(j, "whole", mode->whole);
  if (f->runtime_weight > 0)
    CS_JSON_UINTS(j, {"runtimeWeight", f->runtime_weight},
                  {"unclassedWeight", f->unclassed_weight});
}

static void put_losses(struct cs_json_writer *j, const struct cs_facts *f) {
  cs_json_open(j, "lost", '{');
  CS_JSON_UINTS(j, {"target", f->lost_target}, {"ring", f->lost_ring}, {"broken", f->lost_broken},
                {"full", f->lost_full});
  cs_json_close(j, "}");
  cs_json_open(j, "held", '{');
  CS_JSON_UINTS(j, {"count", f->held_count}, {"p50", f->held_p50_ns}, {"p99", f->held_p99_ns},
                {"max", f->held_max_ns});
  cs_json_close(j, "}");
}

static void put_blocked(struct cs_json_writer *j, const struct cs_blocked_facts *b) {
  if (b->samples == 0) return;
  cs_json_open(j, "blocked", '{');
  CS_JSON_UINTS(j, {"samples", b->samples}, {"weight", b->weight}, {"threads", b->threads});
  cs_json_open(j, "named", '[');
  for (uint32_t i = 0; i < b->threads && i < CS_BLOCKED_NAMED; i++) {
    cs_json_open(j, NULL, '[');
    cs_json_text(j, NULL, b->named[i].thread);
    cs_json_uint(j, NULL, b->named[i].weight);
    cs_json_close(j, "]");
  }
  cs_json_close(j, "]");
  cs_json_close(j, "}");
}

void cs_put_json_facts(struct cs_json_writer *j, const struct cs_facts *f) {
  cs_json_open(j, "facts", '{');
  CS_JSON_TEXTS(j, {"program", f->program}, {"runtime", f->runtime});
  put_mode(j, f);
  CS_JSON_UINTS(j, {"hz", f->hz}, {"startMs", f->start_ns / 1000000},
                {"durationMs", f->duration_ns / 1000000}, {"samples", f->samples},
                {"complete", f->complete});
  if (f->processors > 0) cs_json_uint(j, "processors", f->processors);
  if (f->events > 0) CS_JSON_UINTS(j, {"events", f->events}, {"eventsWeight", f->events_value});
  put_losses(j, f);
  cs_json_uint(j, "asleep", f->asleep);
  if (f->mode == CS_WIRE_MODE_WALL)
    CS_JSON_UINTS(j, {"uncoveredNs", f->ticks.uncovered_ns}, {"nativeThreads", f->ticks.native},
                  {"haltedNs", f->times.halted_ns});
  if (f->mode == CS_WIRE_MODE_ASYNC)
    CS_JSON_UINTS(j, {"scans", f->scans.succeeded}, {"scansNs", f->scans.covered_ns});
  put_engine(j, f);
  put_blocked(j, &f->blocked);
  if (f->ended) {
    CS_JSON_UINTS(j, {"suspensions", f->suspensions}, {"stoppedNs", f->stopped.stopped_ns},
                  {"unsampledNs", f->stopped.unsampled_ns});
  } else {
    cs_json_null(j, "suspensions");
  }
  CS_JSON_UINTS(j, {"putOff", f->put_off.samples}, {"putOffEvents", f->put_off.events});
  cs_json_bool(j, "inlined", f->inlined.wanted);
  cs_json_text(j, "version", CLRSNAP_VERSION);
  put_stops(j, f);
  cs_json_close(j, "}");
}

void cs_put_json_tables(struct cs_json_writer *j, const struct cs_profile *p) {
  cs_json_open_line(j, "kinds", '[');
  for (int k = 0; k < CS_KIND_COUNT; k++) {
    cs_json_open(j, NULL, '[');
    CS_JSON_TEXTS(j, {NULL, cs_kind_token((enum cs_profile_kind)k)},
                  {NULL, cs_kind_label((enum cs_profile_kind)k)});
    cs_json_close(j, "]");
  }
  cs_json_close(j, "]");
  cs_json_open_line(j, "strings", '[');
  for (uint32_t i = 0; i < p->strings.count; i++) {
    size_t len;
    const char *text = cs_strings_get(&p->strings, i, &len);
    if (i > 0) cs_json_new_line(j);
    cs_json_bytes(j, NULL, text, len);
  }
  cs_json_close(j, "]");
  cs_json_open_line(j, "frames", '[');
  for (size_t i = 0; i < p->frame_count; i++) {
    const struct cs_profile_frame *f = &p->frames[i];
    CS_JSON_UINTS(j, {NULL, f->name}, {NULL, f->module}, {NULL, f->kind});
  }
  cs_json_close(j, "]");
  cs_json_open_line(j, "threads", '[');
  for (size_t i = 0; i < p->thread_count; i++) {
    cs_json_open(j, NULL, '[');
    CS_JSON_UINTS(j, {NULL, p->threads[i].name}, {NULL, p->threads[i].tid});
    cs_json_close(j, "]");
  }
  cs_json_close(j, "]");
  if (p->inlining_count == 0) return;
  cs_json_open_line(j, "inlining", '[');
  for (size_t i = 0; i < p->inlining_count; i++)
    CS_JSON_UINTS(j, {NULL, p->inlining[i].method}, {NULL, p->inlining[i].into});
  cs_json_close(j, "]");
}

void cs_put_json_lines(struct cs_json_writer *j, const char *name, char *text, size_t skip) {
  cs_json_open(j, name, '[');
  for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
    cs_json_text(j, NULL, line + skip);
  cs_json_close(j, "]");
}

// "reasons":[...]: a sentence each.
static void put_reasons(struct cs_json_writer *j, const struct cs_diff *d) {
  char *text = NULL, none[] = "";
  size_t len;
  FILE *lines = open_memstream(&text, &len);
  if (lines != NULL) cs_diff_put_reasons(d, "", lines);
  bool written = lines != NULL && fclose(lines) == 0;
  cs_put_json_lines(j, "reasons", written ? text : none, 0);
  free(text);
}

void cs_put_json_scale(struct cs_json_writer *j, const struct cs_diff *d) {
  cs_json_text(j, "normalize", cs_normalize_token(d->normalize));
  cs_json_open(j, "scale", '{');
  cs_json_real(j, "samples", d->samples_scale);
  cs_json_real(j, "weight", d->weight_scale);
  cs_json_close(j, "}");
  put_reasons(j, d);
}

void cs_put_json_only(struct cs_json_writer *j, const struct cs_profile *p) {
  if (p->only != CS_ONLY_NONE)
    cs_json_text(j, "only", p->only == CS_ONLY_BEFORE ? "before" : "after");
}

enum column { PARENT, FRAME, SAMPLES, WEIGHT, MICROSECONDS };

static uint64_t value(const struct cs_tree *tree, size_t i, enum column column) {
  const struct cs_node *n = &tree->nodes[i];
  switch (column) {
    case PARENT:
      return i - n->parent;
    case FRAME:
      return n->frame;
    case SAMPLES:
      return n->samples;
    case WEIGHT:
      return n->weight;
    default:
      return n->weight / 1000;
  }
}

static void put_column(struct cs_json_writer *j, const struct cs_tree *tree, const char *name,
                       enum column column) {
  cs_json_open_line(j, name, '[');
  for (size_t i = 1; i < tree->count; i++) cs_json_uint(j, NULL, value(tree, i, column));
  cs_json_close(j, "]");
}

// Samples in time, node by node, as many of a node as its `self` says, in milliseconds since the
// node's previous sample.
enum time_column { TIME, TIME_WEIGHT, TIME_MICROSECONDS, ASLEEP };

static int by_leaf_and_time(const void *a, const void *b) {
  const struct cs_profile_sample *x = *(const struct cs_profile_sample *const *)a;
  const struct cs_profile_sample *y = *(const struct cs_profile_sample *const *)b;
  return CS_ORDER(x->leaf, y->leaf) ?: CS_ORDER(x->time_ns, y->time_ns);
}

static uint64_t time_value(const struct cs_profile_sample *s, const struct cs_profile_sample *last,
                           enum time_column column) {
  switch (column) {
    case TIME:
      return s->time_ns / 1000000 - (last->leaf == s->leaf ? last->time_ns / 1000000 : 0);
    case TIME_WEIGHT:
      return s->weight;
    case TIME_MICROSECONDS:
      return s->weight / 1000;
    default:
      return s->asleep;
  }
}

static void put_time_column(struct cs_json_writer *j, const struct cs_profile_sample **sorted,
                            size_t count, const char *name, enum time_column column) {
  static const struct cs_profile_sample none = {0};
  cs_json_open_line(j, name, '[');
  for (size_t i = 0; i < count; i++)
    cs_json_uint(j, NULL, time_value(sorted[i], i > 0 ? sorted[i - 1] : &none, column));
  cs_json_close(j, "]");
}

static bool is_time(const struct cs_profile *p) {
  return cs_mode_of(&p->facts)->unit == CS_UNIT_NS;
}

static void put_times(struct cs_json_writer *j, const struct cs_profile *p) {
  if (p->sample_count == 0) return;
  const struct cs_profile_sample **sorted = cs_allocate(p->sample_count * sizeof *sorted);
  bool any_asleep = false;
  for (size_t i = 0; i < p->sample_count; i++) {
    sorted[i] = &p->samples[i];
    any_asleep = any_asleep || p->samples[i].asleep;
  }
  cs_sort(sorted, p->sample_count, sizeof *sorted, by_leaf_and_time);
  put_time_column(j, sorted, p->sample_count, "time", TIME);
  put_time_column(j, sorted, p->sample_count, "timeWeight",
                  is_time(p) ? TIME_MICROSECONDS : TIME_WEIGHT);
  if (any_asleep) put_time_column(j, sorted, p->sample_count, "asleep", ASLEEP);
  free(sorted);
}

static void put_values(struct cs_json_writer *j, const char *name, const uint64_t *values,
                       size_t count, uint64_t unit) {
  cs_json_open_line(j, name, '[');
  for (size_t i = 1; i < count; i++) cs_json_uint(j, NULL, values[i] / unit);
  cs_json_close(j, "]");
}

// The facts of the recording before and its numbers, node by node.
static void put_diff(struct cs_json_writer *j, const struct cs_diff *d) {
  bool time = is_time(&d->profile);
  size_t count = d->profile.tree.count;
  cs_json_open_line(j, "diff", '{');
  cs_put_json_scale(j, d);
  cs_json_new_line(j);
  cs_put_json_facts(j, d->before);
  put_values(j, "self", d->samples, count, 1);
  put_values(j, time ? "selfUs" : "selfWeight", d->weight, count, time ? 1000 : 1);
  cs_json_close(j, "}");
}

static void put_profile(struct cs_json_writer *j, const struct cs_profile *p) {
  cs_json_open_line(j, NULL, '{');
  cs_put_json_facts(j, &p->facts);
  cs_put_json_tables(j, p);
  put_column(j, &p->tree, "parent", PARENT);
  put_column(j, &p->tree, "frame", FRAME);
  put_column(j, &p->tree, "self", SAMPLES);
  if (is_time(p))
    put_column(j, &p->tree, "selfUs", MICROSECONDS);
  else
    put_column(j, &p->tree, "selfWeight", WEIGHT);
  put_times(j, p);
  if (p->diff != NULL) put_diff(j, p->diff);
  if (p->only != CS_ONLY_NONE) cs_json_new_line(j);
  cs_put_json_only(j, p);
  cs_json_close(j, "}");
}

// Pauses concern all modes. Two recordings that are compared have no time in common.
static void put_marks(struct cs_json_writer *j, const struct cs_profile *p) {
  for (size_t i = 0; i < p->sample_count; i++) {
    const struct cs_profile_sample *s = &p->samples[i];
    uint64_t begin = s->time_ns > s->weight ? s->time_ns - s->weight : 0;
    const struct cs_node *leaf = &p->tree.nodes[s->leaf];
    size_t len = 0;
    const char *name =
        leaf->parent == 0 ? "" : cs_strings_get(&p->strings, p->frames[leaf->frame].name, &len);
    cs_json_open(j, NULL, '[');
    CS_JSON_UINTS(j, {NULL, begin / 1000}, {NULL, s->weight / 1000});
    cs_json_bytes(j, NULL, name, len);
    cs_json_close(j, "]");
  }
}

void cs_put_json_marks(struct cs_json_writer *j, const struct cs_profile_set *set) {
  cs_json_open(j, "marks", '[');
  for (size_t i = 0; i < set->count; i++)
    if (set->profiles[i].facts.mode == CS_WIRE_MODE_GC && set->profiles[i].only == CS_ONLY_NONE)
      put_marks(j, &set->profiles[i]);
  cs_json_close(j, "]");
}

bool cs_write_json(const struct cs_profile_set *set, FILE *out) {
  struct cs_json_writer j = {.out = out};
  cs_json_open(&j, NULL, '{');
  cs_json_open(&j, "modes", '[');
  for (size_t i = 0; i < set->count; i++) put_profile(&j, &set->profiles[i]);
  cs_json_new_line(&j);
  cs_json_close(&j, "]");
  cs_put_json_marks(&j, set);
  return cs_json_end(&j, "}");
}
