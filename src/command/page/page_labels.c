// SPDX-License-Identifier: MIT
// Labels are as many as requests, so the page has them in two shorter forms: the route of each, and
// the traces that lasted longest by their own samples. One thread. Signal-safe: no.
#include "page/page_labels.h"

#include <stdlib.h>
#include <string.h>

#include "profile/traces.h"

#define MOST_TRACES 50

static void add_routes(struct cs_page_labels *l, uint32_t labels) {
  struct cs_strings known = {0};
  l->routes = cs_allocate(labels * sizeof *l->routes);
  for (uint32_t i = 1; i < labels && l->p->endpoints != NULL; i++) {
    char name[4096];
    if (l->p->endpoints[i][0] == '\0') continue;
    cs_route_name(l->p, i, name, sizeof name);
    uint32_t id = cs_strings_add(&known, name, strlen(name));
    if (l->routes[id] == NULL) l->routes[id] = strdup(name);
    if (l->routes[id] == NULL) abort();
    l->route[i] = id + 1;
  }
  l->route_count = (uint32_t)known.count;
  cs_strings_free(&known);
}

static int by_length(const void *a, const void *b) {
  const struct cs_page_trace *x = a, *y = b;
  uint64_t of_x = x->last_ns - x->first_ns, of_y = y->last_ns - y->first_ns;
  return CS_ORDER(of_y, of_x) ?: CS_ORDER(y->weight, x->weight) ?: CS_ORDER(x->label, y->label);
}

// All traces, numbered as they come; `l->trace` has their numbers.
static struct cs_page_trace *list_traces(struct cs_page_labels *l, uint32_t labels,
                                         uint32_t *count) {
  struct cs_page_trace *traces = cs_allocate(labels * sizeof *traces);
  struct cs_strings known = {0};
  for (uint32_t i = 1; i < labels; i++) {
    struct cs_label label = cs_labels_get(l->p->labels, i);
    uint32_t id = cs_strings_add(&known, (const char *)label.trace, sizeof label.trace);
    if (traces[id].label == 0 || l->route[traces[id].label] == 0) traces[id].label = i;
    l->trace[i] = id + 1;
  }
  for (size_t i = 0; i < l->p->sample_count; i++) {
    const struct cs_profile_sample *s = &l->p->samples[i];
    if (s->label == CS_NO_LABEL) continue;
    struct cs_page_trace *t = &traces[l->trace[s->label] - 1];
    if (t->samples == 0 || s->time_ns < t->first_ns) t->first_ns = s->time_ns;
    if (s->time_ns > t->last_ns) t->last_ns = s->time_ns;
    t->samples++;
    t->weight += s->weight;
  }
  *count = (uint32_t)known.count;
  cs_strings_free(&known);
  return traces;
}

static void add_traces(struct cs_page_labels *l, uint32_t labels) {
  uint32_t all, *now;
  l->traces = list_traces(l, labels, &all);
  // By the label that stands for a trace: its number before, then after the sort.
  uint32_t *number = cs_allocate(labels * sizeof *number);
  for (uint32_t i = 0; i < all; i++) number[l->traces[i].label] = i + 1;
  now = cs_allocate((all + 1) * sizeof *now);
  cs_sort(l->traces, all, sizeof *l->traces, by_length);
  for (uint32_t i = 0; i < all && i < MOST_TRACES && l->traces[i].samples > 0; i++)
    now[number[l->traces[i].label]] = l->trace_count = i + 1;
  for (uint32_t i = 1; i < labels; i++) l->trace[i] = now[l->trace[i]];
  free(number);
  free(now);
}

void cs_page_labels_init(struct cs_page_labels *l, const struct cs_profile *p) {
  *l = (struct cs_page_labels){.p = p};
  if (p->labels == NULL || p->labelled.count == 0) return;
  uint32_t labels = cs_labels_count(p->labels);
  l->route = cs_allocate(labels * sizeof *l->route);
  l->trace = cs_allocate(labels * sizeof *l->trace);
  add_routes(l, labels);
  add_traces(l, labels);
}

void cs_page_labels_put(const struct cs_page_labels *l, uint64_t unit, struct cs_json_writer *j) {
  if (l->route_count == 0 && l->trace_count == 0) return;
  cs_json_open_line(j, "routes", '[');
  for (uint32_t i = 0; i < l->route_count; i++) cs_json_text(j, NULL, l->routes[i]);
  cs_json_close(j, "]");
  cs_json_bool(j, "byRoute", l->p->by_route);
  cs_json_open_line(j, "traces", '[');
  for (uint32_t i = 0; i < l->trace_count; i++) {
    const struct cs_page_trace *t = &l->traces[i];
    struct cs_label label = cs_labels_get(l->p->labels, t->label);
    cs_json_open(j, NULL, '[');
    CS_JSON_UINTS(j, {NULL, l->route[t->label]});
    cs_json_text(j, NULL, cs_label_in_hex(&label).trace);
    CS_JSON_UINTS(j, {NULL, t->first_ns / 1000000}, {NULL, (t->last_ns - t->first_ns) / 1000000},
                  {NULL, t->samples}, {NULL, t->weight / unit});
    cs_json_close(j, "]");
  }
  cs_json_close(j, "]");
}

void cs_page_labels_free(struct cs_page_labels *l) {
  free(l->route);
  free(l->trace);
  for (uint32_t i = 0; i < l->route_count; i++) free(l->routes[i]);
  free(l->routes);
  free(l->traces);
}
