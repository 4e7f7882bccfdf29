// SPDX-License-Identifier: MIT
// A moment of `clrsnap top` as one line of JSON. Unknown values are null. One thread. Signal-safe:
// no.
#include <string.h>
#include <time.h>

#include "top/top.h"
#include "util/json.h"

// A negative value is an unknown one.
static void put_number(struct cs_json_writer *j, const char *key, double value, int decimals) {
  if (value < 0)
    cs_json_null(j, key);
  else
    cs_json_fixed(j, key, value, decimals);
}

static void put_counters(struct cs_json_writer *j, const struct cs_counters *c) {
  put_number(j, "heap_bytes", c->known ? c->heap_bytes : -1, 0);
  put_number(j, "alloc_bytes_per_s", c->known ? c->alloc_bytes_per_s : -1, 0);
  put_number(j, "gc_pause_percent", c->known && c->gc_pause >= 0 ? 100 * c->gc_pause : -1, 3);
  if (c->known) {
    cs_json_open(j, "gc_counts", '[');
    for (int i = 0; i < 3; i++) cs_json_uint(j, NULL, c->gc_counts[i]);
    cs_json_close(j, "]");
    return;
  }
  cs_json_null(j, "gc_counts");
  if (c->why[0] != '\0') cs_json_text(j, "no_counters_because", c->why);
}

static void put_cause(struct cs_json_writer *j, const struct cs_top_cause *c) {
  if (c->why[0] != '\0') cs_json_text(j, "wait_unknown_because", c->why);
  if (c->place[0] == '\0') return;
  cs_json_open(j, "wait", '{');
  cs_json_text(j, "place", c->place);
  CS_JSON_UINTS(j, {"waiting", c->waiting}, {"workers", c->workers}, {"queued", c->queued});
  put_number(j, "age_s", c->age_s, 1);
  cs_json_close(j, "}");
}

static void put_pool(struct cs_json_writer *j, const struct cs_top_pool *p) {
  if (!p->known) {
    cs_json_null(j, "thread_pool");
    return;
  }
  cs_json_open(j, "thread_pool", '{');
  CS_JSON_UINTS(j, {"workers", p->threads}, {"asleep", p->asleep}, {"queued", p->queued});
  put_number(j, "completed_per_s", p->completed_per_s, 1);
  cs_json_bool(j, "starved", p->starved);
  put_cause(j, &p->cause);
  cs_json_close(j, "}");
}

static void put_facts(struct cs_json_writer *j, const struct cs_top_facts *f) {
  char now[64] = "";
  time_t seconds = time(NULL);
  struct tm utc;
  if (gmtime_r(&seconds, &utc) != NULL) (void)strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &utc);
  cs_json_text(j, "time", now);
  cs_json_int(j, "pid", f->pid);
  CS_JSON_TEXTS(j, {"command", f->program}, {"runtime", f->runtime}, {"mode", f->mode});
  cs_json_uint(j, "hz", f->hz);
  put_number(j, "elapsed_s", f->elapsed_s, 3);
  put_number(j, "interval_s", f->interval_s, 3);
  CS_JSON_UINTS(j, {"samples", f->samples}, {"lost", f->lost});
  put_number(j, "samples_per_s", f->samples_per_s, 1);
  put_number(j, "complete_percent", f->complete < 0 ? -1 : 100 * f->complete, 2);
  put_number(j, "cpu_percent", f->cpu < 0 ? -1 : 100 * f->cpu, 1);
  put_number(j, "rss_bytes", f->rss_bytes > 0 ? (double)f->rss_bytes : -1, 0);
  put_counters(j, &f->counters);
  put_pool(j, &f->pool);
}

static const char *text_of(const struct cs_top *top, uint32_t string) {
  return cs_strings_get(&top->methods.strings, string, NULL);
}

static void put_method(struct cs_json_writer *j, const struct cs_top *top,
                       const struct cs_top_method *row) {
  const struct cs_profile_frame *frame = &top->methods.frames[row->frame];
  cs_json_open(j, NULL, '{');
  CS_JSON_TEXTS(j, {"name", text_of(top, frame->name)}, {"module", text_of(top, frame->module)},
                {"kind", cs_kind_token(frame->kind)});
  put_number(j, "self_percent", 100 * row->self, 2);
  put_number(j, "total_percent", 100 * row->total, 2);
  cs_json_close(j, "}");
}

static void put_thread(struct cs_json_writer *j, const struct cs_top *top,
                       const struct cs_top_thread *t) {
  bool known = t->hottest != CS_NO_TEXT;
  cs_json_open(j, NULL, '{');
  cs_json_uint(j, "tid", t->tid);
  cs_json_text(j, "name", t->name);
  put_number(j, "cpu_percent", t->cpu < 0 ? -1 : 100 * t->cpu, 1);
  put_number(j, "share_percent", 100 * t->share, 2);
  cs_json_text(j, "hottest", known ? text_of(top, top->methods.frames[t->hottest].name) : NULL);
  cs_json_close(j, "}");
}

void cs_top_write_json(const struct cs_top_moment *m, size_t limit, FILE *out) {
  struct cs_json_writer j = {.out = out};
  const char *mode = m->facts.mode;
  cs_json_open(&j, NULL, '{');
  put_facts(&j, &m->facts);
  put_number(&j, "window_s", m->view.whole ? -1 : m->facts.window_s, 3);
  cs_json_bool(&j, "inlined", m->facts.inlined);
  cs_json_text(&j, "shares_of", cs_mode(cs_mode_by_name(mode, strlen(mode)))->whole);
  cs_json_open(&j, "methods", '[');
  for (size_t i = 0; i < m->method_count && i < limit; i++) put_method(&j, m->top, &m->methods[i]);
  cs_json_close(&j, "]");
  cs_json_open(&j, "threads", '[');
  for (size_t i = 0; i < m->thread_count && i < limit; i++) put_thread(&j, m->top, &m->threads[i]);
  (void)cs_json_end(&j, "]}");
}
