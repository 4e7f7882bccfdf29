// SPDX-License-Identifier: MIT
// speedscope's file format: one "sampled" profile per mode and thread. That of cpu or wall time is
// in nanoseconds from the start of the recording; speedscope puts samples one behind the other, so
// a span in which the thread was not seen is a sample with an empty stack: the time axis is the
// real one. That of events (allocations, waits, exceptions, pauses) has them in order of time, each
// as wide as it weighs. All share one list of frames. One thread. Signal-safe: no.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/writers.h"
#include "profile/timeline.h"
#include "util/text.h"

static void put_frame(const struct cs_profile *p, uint32_t i, FILE *out) {
  size_t len;
  const char *name = cs_strings_get(&p->strings, p->frames[i].name, &len);
  (void)fputs("{\"name\":", out);
  cs_put_json(out, name, len);
  const char *file = cs_profile_file(p, i, &len);
  bool source = file != NULL;
  if (!source) file = cs_profile_module(p, i, &len);
  if (len > 0) {
    (void)fputs(",\"file\":", out);
    cs_put_json(out, file, len);
  }
  if (source) (void)fprintf(out, ",\"line\":%" PRIu32, p->frames[i].line);
  (void)putc('}', out);
}

static void put_frames(const struct cs_profile_set *set, FILE *out) {
  const char *comma = "";
  (void)fputs("\"shared\":{\"frames\":[", out);
  for (size_t k = 0; k < set->count; k++) {
    for (uint32_t i = 0; i < set->profiles[k].frame_count; i++, comma = ",\n") {
      (void)fputs(comma, out);
      put_frame(&set->profiles[k], i, out);
    }
  }
  (void)fputs("]}", out);
}

struct writer {
  FILE *out;
  const struct cs_profile *p;
  size_t base;      // where its frames begin in the list
  bool many_modes;  // in the file: profiles say which
  const struct cs_timeline *t;
  unsigned profiles, active;  // written; the one to show first
  uint64_t most;              // of what that one has
  uint32_t *path;
  size_t capacity;
};

static void put_stack(struct writer *w, uint32_t leaf) {
  size_t depth = cs_tree_path(&w->p->tree, leaf, &w->path, &w->capacity);
  (void)putc('[', w->out);
  for (size_t d = 0; d < depth; d++)
    (void)fprintf(w->out, d > 0 ? ",%zu" : "%zu", w->base + w->path[d]);
  (void)putc(']', w->out);
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
  (void)fputs(
      w->profiles > 0 ? ",\n{\"type\":\"sampled\",\"name\":" : "{\"type\":\"sampled\",\"name\":",
      w->out);
  cs_put_json(w->out, name, strlen(name));
  (void)fprintf(w->out, ",\"unit\":\"%s\",\"startValue\":0,\n\"samples\":[", units[mode->unit]);
}

// `amount`: the thread of the first mode that has most of it is shown first.
static void end_profile(struct writer *w, uint64_t end, uint64_t amount) {
  (void)fprintf(w->out, "],\n\"endValue\":%" PRIu64 "}", end);
  if (amount > w->most && w->base == 0) {
    w->most = amount;
    w->active = w->profiles;
  }
  w->profiles++;
}

// ---- Time ----

static void put_samples(struct writer *w, uint32_t thread) {
  uint64_t at = 0;
  const char *comma = "";
  for (size_t i = w->t->first[thread]; i < w->t->first[thread + 1]; i++) {
    const struct cs_span *span = &w->t->spans[i];
    (void)fprintf(w->out, span->begin_ns > at ? "%s[]," : "%s", comma);
    put_stack(w, span->leaf);
    comma = ",\n";
    at = span->end_ns;
  }
}

static uint64_t put_weights(struct writer *w, uint32_t thread) {
  uint64_t at = 0;
  const char *comma = "";
  for (size_t i = w->t->first[thread]; i < w->t->first[thread + 1]; i++) {
    const struct cs_span *span = &w->t->spans[i];
    if (span->begin_ns > at) {
      (void)fprintf(w->out, "%s%" PRIu64, comma, span->begin_ns - at);
      comma = ",";
    }
    (void)fprintf(w->out, "%s%" PRIu64, comma, span->end_ns - span->begin_ns);
    comma = ",";
    at = span->end_ns;
  }
  return at;
}

// For how long a thread was seen to run.
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
    (void)fputs("],\n\"weights\":[", w->out);
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
    if (i > 0) (void)fputs(",\n", w->out);
    put_stack(w, samples[order[i]].leaf);
  }
  (void)fputs("],\n\"weights\":[", w->out);
  for (size_t i = 0; i < count; i++) {
    uint64_t weight = samples[order[i]].weight;
    (void)fprintf(w->out, i > 0 ? ",%" PRIu64 : "%" PRIu64, weight);
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

bool cs_write_speedscope(const struct cs_profile_set *set, FILE *out) {
  struct writer w = {.out = out, .many_modes = set->count > 1};
  const char *program = set->profiles[0].facts.program;
  (void)fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n", out);
  (void)fputs("\"exporter\":\"clrsnap " CLRSNAP_VERSION "\",\"name\":", out);
  cs_put_json(out, program, strlen(program));
  (void)fputs(",\n", out);
  put_frames(set, out);
  (void)fputs(",\n\"profiles\":[", out);
  for (size_t k = 0; k < set->count; k++) {
    w.p = &set->profiles[k];
    if (cs_mode_of(&w.p->facts)->timed)
      put_time(&w);
    else
      put_events(&w);
    w.base += w.p->frame_count;
  }
  if (w.profiles == 0) {  // speedscope wants at least one
    (void)fputs(
        "{\"type\":\"sampled\",\"name\":\"nothing was sampled\",\"unit\":\"nanoseconds\","
        "\"startValue\":0,\"endValue\":0,\"samples\":[],\"weights\":[]}",
        out);
  }
  (void)fprintf(out, "],\n\"activeProfileIndex\":%u}\n", w.active);
  free(w.path);
  return fflush(out) == 0 && !ferror(out);
}
