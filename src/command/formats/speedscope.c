// SPDX-License-Identifier: MIT
// speedscope's file format: one "sampled" profile per mode and thread. A profile of cpu mode or
// wall is in nanoseconds from the start of the recording. speedscope lays samples end to end, so a
// span without samples of the thread is a sample with an empty stack, which keeps the time axis
// real. A profile of events (allocations, waits, exceptions, pauses) has them in order of time,
// each as wide as its weight. All profiles share one list of frames. One thread. Signal-safe: no.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/writers.h"
#include "profile/timeline.h"
#include "util/json.h"

static void put_frame(struct cs_json_writer *j, const struct cs_profile *p, uint32_t i) {
  size_t len;
  const char *name = cs_strings_get(&p->strings, p->frames[i].name, &len);
  cs_json_open(j, NULL, '{');
  cs_json_bytes(j, "name", name, len);
  const char *file = cs_profile_file(p, i, &len);
  bool source = file != NULL;
  if (!source) file = cs_profile_module(p, i, &len);
  if (len > 0) cs_json_bytes(j, "file", file, len);
  if (source) cs_json_uint(j, "line", p->frames[i].line);
  cs_json_close(j, "}");
}

static void put_frames(struct cs_json_writer *j, const struct cs_profile_set *set) {
  cs_json_open_line(j, "shared", '{');
  cs_json_open(j, "frames", '[');
  for (size_t k = 0; k < set->count; k++) {
    for (uint32_t i = 0; i < set->profiles[k].frame_count; i++) {
      if (j->comma) cs_json_new_line(j);
      put_frame(j, &set->profiles[k], i);
    }
  }
  cs_json_close(j, "]}");
}

struct writer {
  struct cs_json_writer json;
  const struct cs_profile *p;
  size_t base;      // index of its first frame in the list
  bool many_modes;  // profiles are named after their modes
  const struct cs_timeline *t;
  unsigned profiles, active;  // number written; the one to show first
  uint64_t most;              // the amount of the active one
  uint32_t *path;
  size_t capacity;
};

static void put_stack(struct writer *w, uint32_t leaf) {
  size_t depth = cs_tree_path(&w->p->tree, leaf, &w->path, &w->capacity);
  cs_json_open(&w->json, NULL, '[');
  for (size_t d = 0; d < depth; d++) cs_json_uint(&w->json, NULL, w->base + w->path[d]);
  cs_json_close(&w->json, "]");
}

static void begin_profile(struct writer *w, uint32_t thread) {
  static const char *const units[] = {
      [CS_UNIT_NS] = "nanoseconds", [CS_UNIT_BYTES] = "bytes", [CS_UNIT_COUNT] = "none"};
  const struct cs_mode *mode = cs_mode_of(&w->p->facts);
  const struct cs_profile_thread *t = &w->p->threads[thread];
  const char *given = cs_strings_get(&w->p->strings, t->name, NULL);
  char name[320];
  (void)snprintf(name, sizeof name, "%.256s%s(%" PRIu32 ")%s%s", given,
                 given[0] != '\0' ? " " : "thread ", t->tid, w->many_modes ? ": " : "",
                 w->many_modes ? mode->token : "");
  struct cs_json_writer *j = &w->json;
  if (w->profiles > 0) cs_json_new_line(j);
  cs_json_open(j, NULL, '{');
  CS_JSON_TEXTS(j, {"type", "sampled"}, {"name", name}, {"unit", units[mode->unit]});
  cs_json_uint(j, "startValue", 0);
  cs_json_open_line(j, "samples", '[');
}

static void begin_weights(struct writer *w) {
  cs_json_close(&w->json, "]");
  cs_json_open_line(&w->json, "weights", '[');
}

// The thread of the first mode with the largest `amount` is shown first.
static void end_profile(struct writer *w, uint64_t end, uint64_t amount) {
  cs_json_close(&w->json, "]");
  cs_json_new_line(&w->json);
  cs_json_uint(&w->json, "endValue", end);
  cs_json_close(&w->json, "}");
  if (amount > w->most && w->base == 0) {
    w->most = amount;
    w->active = w->profiles;
  }
  w->profiles++;
}

// ---- Time ----

static void put_samples(struct writer *w, uint32_t thread) {
  uint64_t at = 0;
  for (size_t i = w->t->first[thread]; i < w->t->first[thread + 1]; i++) {
    const struct cs_span *span = &w->t->spans[i];
    if (w->json.comma) cs_json_new_line(&w->json);
    if (span->begin_ns > at) {
      cs_json_open(&w->json, NULL, '[');
      cs_json_close(&w->json, "]");
    }
    put_stack(w, span->leaf);
    at = span->end_ns;
  }
}

static uint64_t put_weights(struct writer *w, uint32_t thread) {
  uint64_t at = 0;
  for (size_t i = w->t->first[thread]; i < w->t->first[thread + 1]; i++) {
    const struct cs_span *span = &w->t->spans[i];
    if (span->begin_ns > at) cs_json_uint(&w->json, NULL, span->begin_ns - at);
    cs_json_uint(&w->json, NULL, span->end_ns - span->begin_ns);
    at = span->end_ns;
  }
  return at;
}

// Returns the time for which a thread's samples found it running.
static uint64_t running_ns(const struct cs_timeline *t, uint32_t thread) {
  uint64_t sum = 0;
  for (size_t i = t->first[thread]; i < t->first[thread + 1]; i++)
    sum += t->spans[i].asleep ? 0 : t->spans[i].end_ns - t->spans[i].begin_ns;
  return sum;
}

static void put_time(struct writer *w) {
  struct cs_timeline t;
  cs_timeline_make(&t, w->p, true);
  w->t = &t;
  for (uint32_t i = 0; i < w->p->thread_count; i++) {
    if (t.first[i] == t.first[i + 1]) continue;
    begin_profile(w, i);
    put_samples(w, i);
    begin_weights(w);
    uint64_t end = put_weights(w, i);
    end_profile(w, end, running_ns(&t, i));
  }
  cs_timeline_free(&t);
}

// ---- Events ----

static void put_thread_events(struct writer *w, uint32_t thread, const uint32_t *order,
                              size_t count) {
  const struct cs_profile_sample *samples = w->p->samples;
  uint64_t sum = 0;
  begin_profile(w, thread);
  for (size_t i = 0; i < count; i++) {
    if (i > 0) cs_json_new_line(&w->json);
    put_stack(w, samples[order[i]].leaf);
  }
  begin_weights(w);
  for (size_t i = 0; i < count; i++) {
    uint64_t weight = samples[order[i]].weight;
    cs_json_uint(&w->json, NULL, weight);
    sum += weight;
  }
  end_profile(w, sum, sum);
}

static void put_events(struct writer *w) {
  const struct cs_profile *p = w->p;
  uint32_t *thread = cs_node_threads(&p->tree), *order = cs_samples_in_order(p, thread);
  for (size_t i = 0, next; i < p->sample_count; i = next) {
    uint32_t of = thread[p->samples[order[i]].leaf];
    for (next = i; next < p->sample_count && thread[p->samples[order[next]].leaf] == of;) next++;
    put_thread_events(w, of, &order[i], next - i);
  }
  free(thread);
  free(order);
}

// speedscope wants at least one profile.
static void put_nothing(struct cs_json_writer *j) {
  cs_json_open(j, NULL, '{');
  CS_JSON_TEXTS(j, {"type", "sampled"}, {"name", "nothing was sampled"}, {"unit", "nanoseconds"});
  CS_JSON_UINTS(j, {"startValue", 0}, {"endValue", 0});
  cs_json_open(j, "samples", '[');
  cs_json_close(j, "]");
  cs_json_open(j, "weights", '[');
  cs_json_close(j, "]}");
}

bool cs_write_speedscope(const struct cs_profile_set *set, FILE *out) {
  struct writer w = {.json = {.out = out}, .many_modes = set->count > 1};
  struct cs_json_writer *j = &w.json;
  cs_json_open(j, NULL, '{');
  cs_json_text(j, "$schema", "https://www.speedscope.app/file-format-schema.json");
  cs_json_new_line(j);
  CS_JSON_TEXTS(j, {"exporter", "clrsnap " CLRSNAP_VERSION},
                {"name", set->profiles[0].facts.program});
  put_frames(j, set);
  cs_json_open_line(j, "profiles", '[');
  for (size_t k = 0; k < set->count; k++) {
    w.p = &set->profiles[k];
    if (cs_mode_of(&w.p->facts)->timed)
      put_time(&w);
    else
      put_events(&w);
    w.base += w.p->frame_count;
  }
  if (w.profiles == 0) put_nothing(j);
  cs_json_close(j, "]");
  cs_json_new_line(j);
  cs_json_uint(j, "activeProfileIndex", w.active);
  free(w.path);
  return cs_json_end(j, "}");
}
