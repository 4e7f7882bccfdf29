// SPDX-License-Identifier: MIT
// A moment of `clrsnap top` as one line of JSON. What is not known is null. One thread.
// Signal-safe: no.
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "top/top.h"
#include "util/text.h"

static void put_text(FILE *out, const char *key, const char *text) {
  cs_print(out, "\"%s\":", key);
  cs_put_json(out, text, strlen(text));
}

// A number with `decimals`, or null when it is negative.
static void put_number(FILE *out, const char *key, double value, int decimals) {
  if (value < 0)
    cs_print(out, ",\"%s\":null", key);
  else
    cs_print(out, ",\"%s\":%.*f", key, decimals, value);
}

static void put_counters(const struct cs_counters *c, FILE *out) {
  put_number(out, "heap_bytes", c->known ? c->heap_bytes : -1, 0);
  put_number(out, "alloc_bytes_per_s", c->known ? c->alloc_bytes_per_s : -1, 0);
  put_number(out, "gc_pause_percent", c->known && c->gc_pause >= 0 ? 100 * c->gc_pause : -1, 3);
  if (c->known)
    cs_print(out, ",\"gc_counts\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", c->gc_counts[0],
             c->gc_counts[1], c->gc_counts[2]);
  else
    cs_print(out, ",\"gc_counts\":null");
  if (c->known || c->why[0] == '\0') return;
  cs_print(out, ",");
  put_text(out, "no_counters_because", c->why);
}

static void put_facts(const struct cs_top_facts *f, FILE *out) {
  char now[64] = "";
  time_t seconds = time(NULL);
  struct tm utc;
  if (gmtime_r(&seconds, &utc) != NULL) (void)strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &utc);
  put_text(out, "time", now);
  cs_print(out, ",\"pid\":%d,", f->pid);
  put_text(out, "command", f->program);
  cs_print(out, ",");
  put_text(out, "runtime", f->runtime);
  cs_print(out, ",");
  put_text(out, "mode", f->mode);
  cs_print(out, ",\"hz\":%" PRIu32, f->hz);
  put_number(out, "elapsed_s", f->elapsed_s, 3);
  put_number(out, "interval_s", f->interval_s, 3);
  cs_print(out, ",\"samples\":%" PRIu64 ",\"lost\":%" PRIu64, f->samples, f->lost);
  put_number(out, "samples_per_s", f->samples_per_s, 1);
  put_number(out, "complete_percent", f->complete < 0 ? -1 : 100 * f->complete, 2);
  put_number(out, "cpu_percent", f->cpu < 0 ? -1 : 100 * f->cpu, 1);
  put_number(out, "rss_bytes", f->rss_bytes > 0 ? (double)f->rss_bytes : -1, 0);
  put_counters(&f->counters, out);
}

static const char *text_of(const struct cs_top *top, uint32_t string) {
  return cs_strings_get(&top->methods.strings, string, NULL);
}

static void put_method(const struct cs_top_moment *m, const struct cs_top_method *row, FILE *out) {
  const struct cs_profile_frame *frame = &m->top->methods.frames[row->frame];
  cs_print(out, "{");
  put_text(out, "name", text_of(m->top, frame->name));
  cs_print(out, ",");
  put_text(out, "module", text_of(m->top, frame->module));
  cs_print(out, ",");
  put_text(out, "kind", cs_kind_token(frame->kind));
  put_number(out, "self_percent", 100 * row->self, 2);
  put_number(out, "total_percent", 100 * row->total, 2);
  cs_print(out, "}");
}

static void put_thread(const struct cs_top_moment *m, const struct cs_top_thread *t, FILE *out) {
  cs_print(out, "{\"tid\":%" PRIu32 ",", t->tid);
  put_text(out, "name", t->name);
  put_number(out, "cpu_percent", t->cpu < 0 ? -1 : 100 * t->cpu, 1);
  put_number(out, "share_percent", 100 * t->share, 2);
  if (t->hottest != CS_NO_TEXT) {
    cs_print(out, ",");
    put_text(out, "hottest", text_of(m->top, m->top->methods.frames[t->hottest].name));
  } else {
    cs_print(out, ",\"hottest\":null");
  }
  cs_print(out, "}");
}

void cs_top_write_json(const struct cs_top_moment *m, size_t limit, FILE *out) {
  cs_print(out, "{");
  put_facts(&m->facts, out);
  if (m->view.whole)
    cs_print(out, ",\"window_s\":null");
  else
    put_number(out, "window_s", m->facts.window_s, 3);
  cs_print(out, ",\"inlined\":%s,\"shares_of\":\"%s\",\"methods\":[",
           m->facts.inlined ? "true" : "false",
           cs_mode(cs_mode_by_name(m->facts.mode, strlen(m->facts.mode)))->whole);
  for (size_t i = 0; i < m->method_count && i < limit; i++) {
    if (i > 0) cs_print(out, ",");
    put_method(m, &m->methods[i], out);
  }
  cs_print(out, "],\"threads\":[");
  for (size_t i = 0; i < m->thread_count && i < limit; i++) {
    if (i > 0) cs_print(out, ",");
    put_thread(m, &m->threads[i], out);
  }
  cs_print(out, "]}\n");
}
