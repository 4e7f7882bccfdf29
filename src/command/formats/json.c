// SPDX-License-Identifier: MIT
// A recording for scripts: one JSON object of flat arrays. `parent` is relative (node - parent),
// which keeps the digits few. Nodes are in tree order: parents first; node 0 is left out, the
// tree's first level are the threads. Time is in microseconds ("selfUs"), any other unit as it is
// ("selfWeight"). One such object for each mode that was recorded, in "modes"; "marks"
// are events on the timeline: [begin, duration, text], in microseconds. Of a comparison, each mode
// has "diff", or "only" if one of the recordings has not got it. One thread. Signal-safe: no.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/json.h"

#include "formats/writers.h"
#include "profile/diff.h"
#include "util/text.h"

static void put_text(FILE *out, const char *text) {
  cs_put_json(out, text, strlen(text));
}

static void put_stops(const struct cs_facts *f, FILE *out) {
  (void)fputs(",\"stops\":[", out);
  for (size_t i = 0; i < f->stop_count; i++) {
    (void)fputs(i > 0 ? ",[" : "[", out);
    put_text(out, f->stops[i].token);
    (void)putc(',', out);
    put_text(out, f->stops[i].text);
    (void)fprintf(out, ",%" PRIu64 "]", f->stops[i].count);
  }
  (void)putc(']', out);
}

static void put_engine(const struct cs_facts *f, FILE *out) {
  const struct cs_engine_facts *e = &f->engine;
  if (e->had == CS_WIRE_ENGINE_AUTO) return;
  (void)fprintf(out,
                ",\"engine\":{\"asked\":\"%s\",\"had\":\"%s\",\"rate\":%.1f,\"cpuNs\":%" PRIu64
                ",\"others\":%" PRIu32 ",\"without\":%" PRIu32 ",\"why\":",
                cs_wire_engine_name(e->asked), cs_wire_engine_name(e->had), cs_rate_had(f),
                e->cpu_ns, e->others, e->without);
  put_text(out, e->why);
  (void)fputs(",\"unseen\":", out);
  put_text(out, e->unseen);
  (void)putc('}', out);
}

void cs_put_json_facts(const struct cs_facts *f, FILE *out) {
  (void)fputs("\"facts\":{\"program\":", out);
  put_text(out, f->program);
  (void)fputs(",\"runtime\":", out);
  put_text(out, f->runtime);
  (void)fputs(",\"mode\":", out);
  put_text(out, cs_mode_of(f)->token);
  (void)fputs(",\"unit\":", out);
  put_text(out, cs_unit_name(cs_mode_of(f)->unit));
  (void)fprintf(out, ",\"what\":[\"%s\",\"%s\"]", cs_mode_of(f)->what[0], cs_mode_of(f)->what[1]);
  (void)fprintf(out, ",\"weight\":%" PRIu64 ",\"whole\":\"%s\"", f->weight, cs_mode_of(f)->whole);
  (void)fprintf(out,
                ",\"hz\":%" PRIu32 ",\"startMs\":%" PRIu64 ",\"durationMs\":%" PRIu64
                ",\"samples\":%" PRIu64 ",\"complete\":%" PRIu64,
                f->hz, f->start_ns / 1000000, f->duration_ns / 1000000, f->samples, f->complete);
  if (f->events > 0)
    (void)fprintf(out, ",\"events\":%" PRIu64 ",\"eventsWeight\":%" PRIu64, f->events,
                  f->events_value);
  (void)fprintf(out,
                ",\"lost\":{\"target\":%" PRIu64 ",\"ring\":%" PRIu64 ",\"broken\":%" PRIu64
                ",\"full\":%" PRIu64 "}",
                f->lost_target, f->lost_ring, f->lost_broken, f->lost_full);
  (void)fprintf(out,
                ",\"held\":{\"count\":%" PRIu64 ",\"p50\":%" PRIu64 ",\"p99\":%" PRIu64
                ",\"max\":%" PRIu64 "},\"asleep\":%" PRIu64,
                f->held_count, f->held_p50_ns, f->held_p99_ns, f->held_max_ns, f->asleep);
  put_engine(f, out);
  if (f->ended) {
    (void)fprintf(out,
                  ",\"suspensions\":%" PRIu64 ",\"stoppedNs\":%" PRIu64 ",\"unsampledNs\":%" PRIu64
                  ",\"overruns\":%" PRIu64,
                  f->suspensions, f->stopped_ns, f->unsampled_ns, f->overruns);
  } else {
    (void)fputs(",\"suspensions\":null,\"overruns\":null", out);
  }
  (void)fprintf(out, ",\"putOff\":%" PRIu64 ",\"putOffEvents\":%" PRIu64, f->put_off,
                f->put_off_events);
  (void)fprintf(out, ",\"inlined\":%s,\"version\":\"" CLRSNAP_VERSION "\"",
                f->inlined.wanted ? "true" : "false");
  put_stops(f, out);
  (void)putc('}', out);
}

void cs_put_json_tables(const struct cs_profile *p, FILE *out) {
  (void)fputs(",\n\"kinds\":[", out);
  for (int k = 0; k < CS_KIND_COUNT; k++) {
    (void)fprintf(out, "%s[\"%s\",\"%s\"]", k > 0 ? "," : "",
                  cs_kind_token((enum cs_profile_kind)k), cs_kind_label((enum cs_profile_kind)k));
  }
  (void)fputs("],\n\"strings\":[", out);
  for (uint32_t i = 0; i < p->strings.count; i++) {
    size_t len;
    const char *text = cs_strings_get(&p->strings, i, &len);
    if (i > 0) (void)fputs(",\n", out);
    cs_put_json(out, text, len);
  }
  (void)fputs("],\n\"frames\":[", out);
  for (size_t i = 0; i < p->frame_count; i++) {
    (void)fprintf(out, "%s%" PRIu32 ",%" PRIu32 ",%d", i > 0 ? "," : "", p->frames[i].name,
                  p->frames[i].module, (int)p->frames[i].kind);
  }
  (void)fputs("],\n\"threads\":[", out);
  for (size_t i = 0; i < p->thread_count; i++) {
    (void)fprintf(out, "%s[%" PRIu32 ",%" PRIu32 "]", i > 0 ? "," : "", p->threads[i].name,
                  p->threads[i].tid);
  }
  (void)putc(']', out);
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

static void put_column(const struct cs_tree *tree, const char *name, enum column column,
                       FILE *out) {
  (void)fprintf(out, ",\n\"%s\":[", name);
  for (size_t i = 1; i < tree->count; i++) {
    (void)fprintf(out, i > 1 ? ",%" PRIu64 : "%" PRIu64, value(tree, i, column));
  }
  (void)putc(']', out);
}

// Samples in time, node by node, as many of each as its `self` says: milliseconds, as distances
// from the node's sample before.
enum time_column { TIME, TIME_WEIGHT, TIME_MICROSECONDS, ASLEEP };

static int by_leaf_and_time(const void *a, const void *b) {
  const struct cs_profile_sample *x = *(const struct cs_profile_sample *const *)a;
  const struct cs_profile_sample *y = *(const struct cs_profile_sample *const *)b;
  if (x->leaf != y->leaf) return x->leaf < y->leaf ? -1 : 1;
  return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
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

static void put_time_column(const struct cs_profile_sample **sorted, size_t count, const char *name,
                            enum time_column column, FILE *out) {
  static const struct cs_profile_sample none = {0};
  (void)fprintf(out, ",\n\"%s\":[", name);
  for (size_t i = 0; i < count; i++) {
    (void)fprintf(out, i > 0 ? ",%" PRIu64 : "%" PRIu64,
                  time_value(sorted[i], i > 0 ? sorted[i - 1] : &none, column));
  }
  (void)putc(']', out);
}

static bool is_time(const struct cs_profile *p) {
  return cs_mode_of(&p->facts)->unit == CS_UNIT_NS;
}

static void put_times(const struct cs_profile *p, FILE *out) {
  if (p->sample_count == 0) return;
  const struct cs_profile_sample **sorted = cs_allocate(p->sample_count * sizeof *sorted);
  bool any_asleep = false;
  for (size_t i = 0; i < p->sample_count; i++) {
    sorted[i] = &p->samples[i];
    any_asleep = any_asleep || p->samples[i].asleep;
  }
  cs_sort(sorted, p->sample_count, sizeof *sorted, by_leaf_and_time);
  put_time_column(sorted, p->sample_count, "time", TIME, out);
  put_time_column(sorted, p->sample_count, "timeWeight",
                  is_time(p) ? TIME_MICROSECONDS : TIME_WEIGHT, out);
  if (any_asleep) put_time_column(sorted, p->sample_count, "asleep", ASLEEP, out);
  free(sorted);
}

static void put_values(const uint64_t *values, size_t count, uint64_t unit, FILE *out) {
  (void)putc('[', out);
  for (size_t i = 1; i < count; i++) {
    (void)fprintf(out, i > 1 ? ",%" PRIu64 : "%" PRIu64, values[i] / unit);
  }
  (void)putc(']', out);
}

// What was before: its facts and, node by node, its numbers.
static void put_diff(const struct cs_diff *d, FILE *out) {
  (void)fprintf(
      out, ",\n\"diff\":{\"normalize\":\"%s\",\"scale\":{\"samples\":%.12g,\"weight\":%.12g},\n",
      cs_normalize_token(d->normalize), d->samples_scale, d->weight_scale);
  cs_put_json_facts(d->before, out);
  (void)fputs(",\n\"self\":", out);
  put_values(d->samples, d->profile.tree.count, 1, out);
  bool time = is_time(&d->profile);
  (void)fprintf(out, ",\n\"%s\":", time ? "selfUs" : "selfWeight");
  put_values(d->weight, d->profile.tree.count, time ? 1000 : 1, out);
  (void)putc('}', out);
}

static void put_profile(const struct cs_profile *p, FILE *out) {
  (void)putc('{', out);
  cs_put_json_facts(&p->facts, out);
  cs_put_json_tables(p, out);
  put_column(&p->tree, "parent", PARENT, out);
  put_column(&p->tree, "frame", FRAME, out);
  put_column(&p->tree, "self", SAMPLES, out);
  if (is_time(p))
    put_column(&p->tree, "selfUs", MICROSECONDS, out);
  else
    put_column(&p->tree, "selfWeight", WEIGHT, out);
  put_times(p, out);
  if (p->diff != NULL) put_diff(p->diff, out);
  if (p->only != CS_ONLY_NONE)
    (void)fprintf(out, ",\n\"only\":\"%s\"", p->only == CS_ONLY_BEFORE ? "before" : "after");
  (void)putc('}', out);
}

// Pauses, which are everybody's; but two recordings that are compared have no time in common.
static void put_marks(const struct cs_profile *p, FILE *out) {
  for (size_t i = 0; i < p->sample_count; i++) {
    const struct cs_profile_sample *s = &p->samples[i];
    uint64_t begin = s->time_ns > s->weight ? s->time_ns - s->weight : 0;
    const struct cs_node *leaf = &p->tree.nodes[s->leaf];
    size_t len = 0;
    const char *name =
        leaf->parent == 0 ? "" : cs_strings_get(&p->strings, p->frames[leaf->frame].name, &len);
    (void)fprintf(out, "%s[%" PRIu64 ",%" PRIu64 ",", i > 0 ? "," : "", begin / 1000,
                  s->weight / 1000);
    cs_put_json(out, name, len);
    (void)putc(']', out);
  }
}

void cs_put_json_marks(const struct cs_profile_set *set, FILE *out) {
  (void)fputs("\"marks\":[", out);
  for (size_t i = 0; i < set->count; i++)
    if (set->profiles[i].facts.mode == CS_WIRE_MODE_GC && set->profiles[i].only == CS_ONLY_NONE)
      put_marks(&set->profiles[i], out);
  (void)putc(']', out);
}

bool cs_write_json(const struct cs_profile_set *set, FILE *out) {
  (void)fputs("{\"modes\":[\n", out);
  for (size_t i = 0; i < set->count; i++) {
    if (i > 0) (void)fputs(",\n", out);
    put_profile(&set->profiles[i], out);
  }
  (void)fputs("\n],", out);
  cs_put_json_marks(set, out);
  (void)fputs("}\n", out);
  return !ferror(out);
}
