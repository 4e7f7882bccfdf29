// SPDX-License-Identifier: MIT
// speedscope's file format: one "sampled" profile per thread, in nanoseconds from the start of the
// recording. speedscope puts samples one behind the other, so a span in which the thread was not
// seen is a sample with an empty stack: the time axis is the real one. One thread. Signal-safe: no.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/text.h"
#include "export/timeline.h"

static void put_frames(const struct cs_profile *p, FILE *out) {
  (void)fputs("\"shared\":{\"frames\":[", out);
  for (uint32_t i = 0; i < p->frame_count; i++) {
    size_t len;
    const char *name = cs_strings_get(&p->strings, p->frames[i].name, &len);
    (void)fputs(i > 0 ? ",\n{\"name\":" : "{\"name\":", out);
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
  (void)fputs("]}", out);
}

struct writer {
  const struct cs_profile *p;
  const struct cs_timeline *t;
  FILE *out;
  uint32_t *path;
  size_t capacity;
};

static void put_samples(struct writer *w, uint32_t thread) {
  uint64_t at = 0;
  const char *comma = "";
  for (size_t i = w->t->first[thread]; i < w->t->first[thread + 1]; i++) {
    const struct cs_span *span = &w->t->spans[i];
    (void)fprintf(w->out, span->begin_ns > at ? "%s[],[" : "%s[", comma);
    size_t depth = cs_node_path(&w->p->tree, span->leaf, &w->path, &w->capacity);
    for (size_t d = 0; d < depth; d++)
      (void)fprintf(w->out, d > 0 ? ",%" PRIu32 : "%" PRIu32, w->path[d]);
    (void)putc(']', w->out);
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

static void put_thread(struct writer *w, uint32_t thread) {
  const struct cs_profile_thread *t = &w->p->threads[thread];
  char name[300];
  (void)snprintf(
      name, sizeof name, "%.256s%s(%" PRIu32 ")", cs_strings_get(&w->p->strings, t->name, NULL),
      cs_strings_get(&w->p->strings, t->name, NULL)[0] != '\0' ? " " : "thread ", t->tid);
  (void)fputs("{\"type\":\"sampled\",\"name\":", w->out);
  cs_put_json(w->out, name, strlen(name));
  (void)fputs(",\"unit\":\"nanoseconds\",\"startValue\":0,\n\"samples\":[", w->out);
  put_samples(w, thread);
  (void)fputs("],\n\"weights\":[", w->out);
  uint64_t end = put_weights(w, thread);
  (void)fprintf(w->out, "],\n\"endValue\":%" PRIu64 "}", end);
}

// For how long a thread was seen to run: the one that ran most is shown first.
static uint64_t running_ns(const struct cs_timeline *t, uint32_t thread) {
  uint64_t sum = 0;
  for (size_t i = t->first[thread]; i < t->first[thread + 1]; i++)
    sum += t->spans[i].asleep ? 0 : t->spans[i].end_ns - t->spans[i].begin_ns;
  return sum;
}

bool cs_write_speedscope(const struct cs_profile_set *set, FILE *out) {
  const struct cs_profile *p = &set->profiles[0];
  struct cs_timeline t;
  cs_timeline_make(&t, p, true);
  struct writer w = {p, &t, out, NULL, 0};
  uint64_t most = 0;
  unsigned profiles = 0, active = 0;
  (void)fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n", out);
  (void)fputs("\"exporter\":\"clrsnap " CLRSNAP_VERSION "\",\"name\":", out);
  cs_put_json(out, p->facts.program, strlen(p->facts.program));
  (void)fputs(",\n", out);
  put_frames(p, out);
  (void)fputs(",\n\"profiles\":[", out);
  for (uint32_t i = 0; i < p->thread_count; i++) {
    if (t.first[i] == t.first[i + 1]) continue;
    if (profiles > 0) (void)fputs(",\n", out);
    put_thread(&w, i);
    uint64_t ran = running_ns(&t, i);
    if (ran > most) active = profiles;
    if (ran > most) most = ran;
    profiles++;
  }
  if (profiles == 0) {  // speedscope wants at least one
    (void)fputs(
        "{\"type\":\"sampled\",\"name\":\"nothing was sampled\",\"unit\":\"nanoseconds\","
        "\"startValue\":0,\"endValue\":0,\"samples\":[],\"weights\":[]}",
        out);
  }
  (void)fprintf(out, "],\n\"activeProfileIndex\":%u}\n", active);
  free(w.path);
  cs_timeline_free(&t);
  return fflush(out) == 0 && !ferror(out);
}
