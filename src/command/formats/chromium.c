// SPDX-License-Identifier: MIT
// Trace events as Chromium and Perfetto read them: one complete event ("X") for each frame as long
// as neighbouring samples have it at the same place of the stack. Those of a thread are in order of
// time, callers before callees. The events of other modes are beside them, with their stacks as an
// argument, leaf first: waits and pauses are asynchronous events ("b", "e"), since they need not
// nest with the samples; allocations and exceptions are instants ("i"). One thread. Signal-safe:
// no.
#include <stdlib.h>
#include <string.h>

#include "formats/writers.h"
#include "profile/markers.h"
#include "profile/timeline.h"
#include "util/json.h"

#define MAX_TID 4194304u  // the kernel's limit

struct event {
  uint64_t begin_ns, end_ns;
  uint32_t frame, depth;
};

struct writer {
  const struct cs_profile *p;
  struct cs_json_writer json;
  struct event *open;    // the stack of frames that go on
  struct event *events;  // that have ended
  size_t depth, open_capacity, count, capacity;
  uint32_t *path;
  size_t path_capacity;
  struct cs_map tids;  // that have a track
  uint64_t next_id;    // of asynchronous events
};

static int by_begin_and_depth(const void *a, const void *b) {
  const struct event *x = a, *y = b;
  return CS_ORDER(x->begin_ns, y->begin_ns) ?: CS_ORDER(x->depth, y->depth);
}

static void end_to(struct writer *w, size_t depth, uint64_t at) {
  while (w->depth > depth) {
    struct event *e = &w->open[--w->depth];
    e->end_ns = at;
    CS_APPEND(w->events, w->count, w->capacity, *e);
  }
}

static void add_span(struct writer *w, const struct cs_span *span, uint64_t at) {
  size_t depth = cs_tree_path(&w->p->tree, span->leaf, &w->path, &w->path_capacity), same = 0;
  if (span->begin_ns > at) end_to(w, 0, at);
  while (same < depth && same < w->depth && w->open[same].frame == w->path[same]) same++;
  end_to(w, same, at);
  while (w->depth < depth) {
    w->open = cs_grow(w->open, w->depth, &w->open_capacity, sizeof *w->open);
    w->open[w->depth] = (struct event){span->begin_ns, 0, w->path[w->depth], (uint32_t)w->depth};
    w->depth++;
  }
}

static void put_event(struct writer *w, const struct event *e, uint64_t tid) {
  const struct cs_profile_frame *f = &w->p->frames[e->frame];
  struct cs_json_writer *j = &w->json;
  size_t len;
  const char *name = cs_strings_get(&w->p->strings, f->name, &len);
  cs_json_open_line(j, NULL, '{');
  cs_json_text(j, "ph", "X");
  cs_json_bytes(j, "name", name, len);
  cs_json_text(j, "cat", cs_kind_token(f->kind));
  CS_JSON_UINTS(j, {"pid", w->p->facts.pid}, {"tid", tid});
  cs_json_decimal(j, "ts", e->begin_ns, 3);
  cs_json_decimal(j, "dur", e->end_ns - e->begin_ns, 3);
  cs_json_close(j, "}");
}

static void put_name(struct writer *w, const char *what, uint64_t tid, const char *name) {
  struct cs_json_writer *j = &w->json;
  cs_json_open_line(j, NULL, '{');
  CS_JSON_TEXTS(j, {"ph", "M"}, {"name", what});
  CS_JSON_UINTS(j, {"pid", w->p->facts.pid}, {"tid", tid});
  cs_json_open(j, "args", '{');
  cs_json_text(j, "name", name);
  cs_json_close(j, "}}");
}

// Ids of threads are used again; each thread gets a track of its own all the same.
static uint64_t track_of(struct writer *w, uint32_t tid) {
  bool added;
  uint64_t track = tid;
  (void)cs_map_put(&w->tids, track, 0, &added);
  while (!added) (void)cs_map_put(&w->tids, track += MAX_TID, 0, &added);
  return track;
}

static void put_samples(struct writer *w, const struct cs_timeline *t, uint32_t thread,
                        uint64_t tid) {
  uint64_t at = 0;
  w->count = 0;
  for (size_t i = t->first[thread]; i < t->first[thread + 1]; i++) {
    // A span without length shows nothing, and readers disagree on how such events nest.
    if (t->spans[i].end_ns == t->spans[i].begin_ns) continue;
    add_span(w, &t->spans[i], at);
    at = t->spans[i].end_ns;
  }
  end_to(w, 0, at);
  cs_sort(w->events, w->count, sizeof *w->events, by_begin_and_depth);
  for (size_t i = 0; i < w->count; i++) put_event(w, &w->events[i], tid);
}

// ---- Events of the runtime ----

static void begin_mark(struct writer *w, const struct cs_marker *m, const char *phase,
                       uint64_t tid) {
  struct cs_json_writer *j = &w->json;
  cs_json_open_line(j, NULL, '{');
  CS_JSON_TEXTS(j, {"ph", phase}, {"cat", cs_mode_of(&m->profile->facts)->token});
  cs_json_bytes(j, "name", m->name, m->len);
  CS_JSON_UINTS(j, {"pid", w->p->facts.pid}, {"tid", tid});
}

static void put_arguments(struct writer *w, const struct cs_marker *m) {
  const struct cs_profile *p = m->profile;
  struct cs_json_writer *j = &w->json;
  size_t depth = cs_tree_path(&p->tree, m->leaf, &w->path, &w->path_capacity);
  enum cs_unit unit = cs_mode_of(&p->facts)->unit;
  cs_json_open(j, "args", '{');
  if (unit != CS_UNIT_NS)
    cs_json_uint(j, unit == CS_UNIT_BYTES ? "bytes" : "stands for", m->weight);
  cs_json_open(j, "stack", '[');
  for (size_t d = depth; d > 0; d--) {
    const struct cs_profile_frame *f = &p->frames[w->path[d - 1]];
    size_t len;
    const char *name = cs_strings_get(&p->strings, f->name, &len);
    if (f->kind != CS_KIND_TYPE) cs_json_bytes(j, NULL, name, len);  // a type is the event's name
  }
  cs_json_close(j, "]}");
}

static void put_mark(struct writer *w, const struct cs_marker *m, uint64_t tid) {
  struct cs_json_writer *j = &w->json;
  bool lasts = cs_mode_of(&m->profile->facts)->unit == CS_UNIT_NS;
  begin_mark(w, m, lasts ? "b" : "i", tid);
  if (lasts)
    cs_json_uint(j, "id", ++w->next_id);
  else
    cs_json_text(j, "s", "t");
  cs_json_decimal(j, "ts", m->begin_ns, 3);
  put_arguments(w, m);
  cs_json_close(j, "}");
  if (!lasts) return;
  begin_mark(w, m, "e", tid);
  cs_json_uint(j, "id", w->next_id);
  cs_json_decimal(j, "ts", m->end_ns, 3);
  cs_json_close(j, "}");
}

static void put_thread(struct writer *w, const struct cs_timeline *t,
                       const struct cs_markers *markers, uint32_t thread) {
  const struct cs_profile_thread *info = &w->p->threads[thread];
  uint64_t tid = track_of(w, info->tid);
  const char *name = cs_strings_get(&w->p->strings, info->name, NULL);
  put_name(w, "thread_name", tid, name[0] != '\0' ? name : "thread");
  put_samples(w, t, thread, tid);
  for (size_t i = markers->first[thread]; i < markers->first[thread + 1]; i++)
    put_mark(w, &markers->all[i], tid);
}

static void put_about(struct cs_json_writer *j, const struct cs_profile_set *set) {
  char modes[128] = "";
  for (size_t i = 0; i < set->count; i++) {
    size_t used = strlen(modes);
    (void)snprintf(modes + used, sizeof modes - used, "%s%s", i > 0 ? "," : "",
                   cs_mode_of(&set->profiles[i].facts)->token);
  }
  cs_json_text(j, "displayTimeUnit", "ms");
  cs_json_open(j, "otherData", '{');
  CS_JSON_TEXTS(j, {"producer", "clrsnap " CLRSNAP_VERSION}, {"mode", modes});
  cs_json_close(j, "}");
}

bool cs_write_chromium(const struct cs_profile_set *set, FILE *out) {
  const struct cs_profile *p = &set->profiles[0];
  struct cs_profile samples = *p;  // of cpu or wall
  struct cs_timeline t;
  struct cs_markers markers;
  if (!cs_mode_of(&p->facts)->timed) samples.sample_count = 0;
  cs_timeline_make(&t, &samples, true);
  cs_markers_make(&markers, set);
  struct writer w = {.p = p, .json = {.out = out}};
  cs_json_open(&w.json, NULL, '{');
  put_about(&w.json, set);
  cs_json_open_line(&w.json, "traceEvents", '[');
  put_name(&w, "process_name", p->facts.pid, p->facts.program);
  for (uint32_t i = 0; i < p->thread_count; i++) {
    if (t.first[i] != t.first[i + 1] || markers.first[i] != markers.first[i + 1])
      put_thread(&w, &t, &markers, i);
  }
  cs_json_new_line(&w.json);
  bool written = cs_json_end(&w.json, "]}");
  free(w.path);
  free(w.open);
  free(w.events);
  cs_map_free(&w.tids);
  cs_timeline_free(&t);
  cs_markers_free(&markers);
  return written;
}
