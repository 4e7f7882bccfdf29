// SPDX-License-Identifier: MIT
// The page's data, in a form that lets a browser draw a million nodes quickly: columns of numbers
// in LEB128; then JSON with all texts, each mode's counts and the offset of its columns ("at");
// then the offset of the JSON in ten digits. A mode's columns, one after the other:
//   nodes    parent (as a distance) and frame: paths from the root without their thread, so that
//            the work of all threads is merged as it is drawn; depth first, parents before their
//            children, without the root
//   entries  node (distance from the previous entry), thread, if there are routes the number of
//            one, samples, weight and, in a comparison, samples and weight before: what a thread,
//            in requests of one route, has in the node itself
//   samples  entry (distance), time in ms (distance within an entry), weight, whether asleep, and
//            if there are traces the number of one of the longest
//   idle     nodes whose stacks are those of idle threads (distances)
// Weights that are time are in microseconds, others as they are. One thread. Signal-safe: no.
#include "page/page_data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/json.h"
#include "formats/markdown.h"
#include "page/page_labels.h"
#include "profile/diff.h"
#include "profile/pool.h"
#include "profile/timeline.h"
#include "profile/waits.h"

#define ROOT 1u
#define MOST_ODD 16

struct entry {
  uint32_t node, thread, from;  // in the page, and in the profile
  uint32_t route;               // 0: none
  uint64_t samples, weight;     // in the page's unit
};

struct page {
  const struct cs_profile *p;
  struct cs_tree tree;    // the profile's, with all threads merged into one node, ROOT
  uint32_t *number;       // per node of `tree`: its number in the page, where ROOT is 0
  struct entry *entries;  // in order
  size_t entry_count;
  const struct cs_profile_sample **samples;  // by entry and time
  uint32_t *entry_of;                        // per node of the profile: the first of its entries
  struct cs_page_labels labels;
  uint64_t *by_route;  // sums of the node at hand: samples and weight of each route, and of none
  uint64_t unit;       // the divisor of weights
  bool any_asleep;
};

struct sink {
  FILE *out;
  uint64_t written;
};

static void put(struct sink *s, uint64_t value) {
  for (; value >= 0x80; value >>= 7, s->written++) (void)putc((int)(value & 0x7F) | 0x80, s->out);
  (void)putc((int)value, s->out);
  s->written++;
}

// Numbers the nodes depth first. Children are linked from the last node to the first, which keeps
// them in the tree's order.
static void number_nodes(struct page *page) {
  const struct cs_tree *tree = &page->tree;
  uint32_t *child = cs_allocate(tree->count * sizeof *child);
  uint32_t *next = cs_allocate(tree->count * sizeof *next);
  uint32_t at = ROOT, numbered = 0;
  for (uint32_t i = (uint32_t)tree->count - 1; i > ROOT; i--) {
    next[i] = child[tree->nodes[i].parent];
    child[tree->nodes[i].parent] = i;
  }
  page->number = cs_allocate(tree->count * sizeof *page->number);
  for (;;) {
    page->number[at] = numbered++;
    if (child[at] != 0) {
      at = child[at];
      continue;
    }
    while (at != ROOT && next[at] == 0) at = tree->nodes[at].parent;
    if (at == ROOT) break;
    at = next[at];
  }
  free(child);
  free(next);
}

static int by_node_thread_and_route(const void *a, const void *b) {
  const struct entry *x = a, *y = b;
  return CS_ORDER(x->node, y->node) ?: CS_ORDER(x->thread, y->thread) ?:
         CS_ORDER(x->route, y->route);
}

// Adds what each route has in the node. The parts of its weight are rounded so that they come to
// the whole.
static void add_entries(struct page *page, struct entry entry) {
  const struct cs_profile *p = page->p;
  const struct cs_node *node = &p->tree.nodes[entry.from];
  uint32_t routes = page->labels.route_count;
  uint64_t *sums = page->by_route, sum = 0;
  memset(sums, 0, 2 * ((size_t)routes + 1) * sizeof *sums);
  sums[0] = node->samples;
  sums[1] = node->weight;
  for (size_t i = cs_label_sums_find(&p->labelled, entry.from, CS_NO_LABEL);
       routes > 0 && i < p->labelled.count && p->labelled.items[i].node == entry.from; i++) {
    const struct cs_label_sum *own = &p->labelled.items[i];
    uint64_t *to = &sums[2 * (size_t)page->labels.route[own->label]];
    sums[0] -= own->samples;
    sums[1] -= own->weight;
    to[0] += own->samples;
    to[1] += own->weight;
  }
  for (entry.route = 0; entry.route <= routes; entry.route++) {
    const uint64_t *of = &sums[2 * (size_t)entry.route];
    if (of[0] == 0 && of[1] == 0 && (routes > 0 || entry.route > 0)) continue;
    entry.samples = of[0];
    entry.weight = (sum + of[1]) / page->unit - sum / page->unit;
    sum += of[1];
    page->entries[page->entry_count++] = entry;
  }
}

static void make_entries(struct page *page, const uint32_t *node) {
  const struct cs_profile *p = page->p;
  uint32_t *thread = cs_node_threads(&p->tree);
  page->entries = cs_allocate((p->tree.count + p->labelled.count + 1) * sizeof *page->entries);
  page->entry_of = cs_allocate(p->tree.count * sizeof *page->entry_of);
  page->by_route = cs_allocate(2 * ((size_t)page->labels.route_count + 1) * sizeof *page->by_route);
  for (uint32_t i = 1; i < p->tree.count; i++)
    if (cs_profile_has_own(p, i))
      add_entries(page, (struct entry){page->number[node[i]], thread[i], .from = i});
  cs_sort(page->entries, page->entry_count, sizeof *page->entries, by_node_thread_and_route);
  for (uint32_t i = (uint32_t)page->entry_count; i-- > 0;)
    page->entry_of[page->entries[i].from] = i;
  free(page->by_route);
  free(thread);
}

// Returns the entry that a sample belongs to.
static uint32_t entry_at(const struct page *page, const struct cs_profile_sample *sample) {
  uint32_t i = page->entry_of[sample->leaf];
  uint32_t route = page->labels.route_count > 0 ? page->labels.route[sample->label] : 0;
  while (page->entries[i].route != route && i + 1 < page->entry_count &&
         page->entries[i + 1].from == sample->leaf)
    i++;
  return i;
}

static void make_tree(struct page *page) {
  cs_tree_init(&page->tree);
  uint32_t *node = cs_tree_join(&page->tree, &page->p->tree, NULL, NULL);
  number_nodes(page);
  make_entries(page, node);
  free(node);
}

static int by_time(const void *a, const void *b) {
  const struct cs_profile_sample *x = *(const struct cs_profile_sample *const *)a;
  const struct cs_profile_sample *y = *(const struct cs_profile_sample *const *)b;
  return CS_ORDER(x->time_ns, y->time_ns);
}

// Sorts by entry (a counting sort), then each entry's samples by time.
static void sort_samples(struct page *page) {
  const struct cs_profile *p = page->p;
  size_t *first = cs_allocate((page->entry_count + 1) * sizeof *first);
  page->samples = cs_allocate((p->sample_count + 1) * sizeof(const struct cs_profile_sample *));
  for (size_t i = 0; i < p->sample_count; i++) first[entry_at(page, &p->samples[i]) + 1]++;
  for (size_t i = 0; i < page->entry_count; i++) first[i + 1] += first[i];
  for (size_t i = 0; i < p->sample_count; i++) {
    page->samples[first[entry_at(page, &p->samples[i])]++] = &p->samples[i];
    page->any_asleep = page->any_asleep || p->samples[i].asleep;
  }
  for (size_t i = 0, from = 0; i < page->entry_count; from = first[i++])
    cs_sort(&page->samples[from], first[i] - from, sizeof *page->samples, by_time);
  free(first);
}

static void put_nodes(const struct page *page, struct sink *s) {
  const struct cs_node *nodes = page->tree.nodes;
  size_t count = page->tree.count - ROOT;
  uint32_t *order = cs_allocate(count * sizeof *order);
  for (uint32_t i = ROOT; i < page->tree.count; i++) order[page->number[i]] = i;
  for (uint32_t k = 1; k < count; k++) put(s, k - page->number[nodes[order[k]].parent]);
  for (uint32_t k = 1; k < count; k++) put(s, nodes[order[k]].frame);
  free(order);
}

enum column { NODE, THREAD, ROUTE, SAMPLES, WEIGHT, SAMPLES_BEFORE, WEIGHT_BEFORE };

static uint64_t entry_value(const struct page *page, size_t i, enum column column) {
  const struct entry *e = &page->entries[i];
  switch (column) {
    case NODE:
      return e->node - (i > 0 ? e[-1].node : 0);
    case THREAD:
      return e->thread;
    case ROUTE:
      return e->route;
    case SAMPLES:
      return e->samples;
    case WEIGHT:
      return e->weight;
    case SAMPLES_BEFORE:
      return page->p->diff->samples[e->from];
    default:
      return page->p->diff->weight[e->from] / page->unit;
  }
}

static void put_entries(const struct page *page, struct sink *s) {
  enum column last = page->p->diff != NULL ? WEIGHT_BEFORE : WEIGHT;
  for (int c = NODE; c <= (int)last; c++) {
    if (c == ROUTE && page->labels.route_count == 0) continue;
    for (size_t i = 0; i < page->entry_count; i++) put(s, entry_value(page, i, (enum column)c));
  }
}

// Entries of one node have the same stack, so they are all idle or none is.
static size_t put_idle(const struct page *page, struct sink *s) {
  bool *idle = cs_idle_nodes(page->p);
  uint32_t last = 0;
  size_t count = 0;
  for (size_t i = 0; i < page->entry_count && idle != NULL; i++) {
    const struct entry *e = &page->entries[i];
    if (!idle[e->from] || e->node == last) continue;
    put(s, e->node - last);
    last = e->node;
    count++;
  }
  free(idle);
  return count;
}

enum sample_column { ENTRY, TIME, SAMPLE_WEIGHT, ASLEEP, TRACE };

static uint64_t sample_value(const struct page *page, size_t i, enum sample_column column) {
  const struct cs_profile_sample *sample = page->samples[i];
  uint32_t entry = entry_at(page, sample),
           before = i > 0 ? entry_at(page, page->samples[i - 1]) : 0;
  uint64_t time = 0;
  if (i > 0 && before == entry) time = page->samples[i - 1]->time_ns / 1000000;
  switch (column) {
    case ENTRY:
      return entry - before;
    case TIME:
      return sample->time_ns / 1000000 - time;
    case SAMPLE_WEIGHT:
      return sample->weight / page->unit;
    case ASLEEP:
      return sample->asleep;
    default:
      return page->labels.trace[sample->label];
  }
}

static void put_samples(const struct page *page, struct sink *s) {
  for (int c = ENTRY; c <= (int)TRACE; c++) {
    if ((c == ASLEEP && !page->any_asleep) || (c == TRACE && page->labels.trace_count == 0))
      continue;
    for (size_t i = 0; i < page->p->sample_count; i++)
      put(s, sample_value(page, i, (enum sample_column)c));
  }
}

struct counts {
  uint64_t at, unit;
  size_t nodes, entries, idle;
  bool asleep;
  struct cs_page_labels labels;
};

static void put_columns(const struct cs_profile *p, struct counts *counts, struct sink *s) {
  struct page page = {.p = p, .unit = cs_mode_of(&p->facts)->unit == CS_UNIT_NS ? 1000 : 1};
  cs_page_labels_init(&page.labels, p);
  make_tree(&page);
  sort_samples(&page);
  *counts = (struct counts){.at = s->written,
                            .unit = page.unit,
                            .nodes = page.tree.count - ROOT - 1,
                            .entries = page.entry_count,
                            .asleep = page.any_asleep,
                            .labels = page.labels};
  put_nodes(&page, s);
  put_entries(&page, s);
  put_samples(&page, s);
  counts->idle = put_idle(&page, s);
  cs_tree_free(&page.tree);
  free(page.number);
  free(page.entries);
  free(page.samples);
  free(page.entry_of);
}

// By how many tenths of a point a share of the whole may be off; nothing where all is recorded, or
// that is not known.
static void put_points_off(struct cs_json_writer *j, const struct cs_profile *p) {
  if (p->facts.samples == 0 || p->diff != NULL || cs_facts_have_all(&p->facts) ||
      cs_facts_are_by_count(&p->facts))
    return;
  bool *idle = cs_left_out_nodes(p);
  cs_json_uint(j, "tenthsOff", (uint64_t)(10 * cs_points_off(p, idle) + 0.5));
  free(idle);
}

static void put_head(struct cs_json_writer *j, const struct cs_profile *p,
                     const struct counts *counts) {
  cs_json_open_line(j, NULL, '{');
  cs_put_json_facts(j, &p->facts);
  cs_put_json_tables(j, p);
  CS_JSON_UINTS(j, {"at", counts->at}, {"nodes", counts->nodes}, {"entries", counts->entries},
                {"idle", counts->idle}, {"samples", p->sample_count});
  cs_json_bool(j, "asleep", counts->asleep);
  put_points_off(j, p);
  cs_page_labels_put(&counts->labels, counts->unit, j);
  if (p->diff != NULL) {
    cs_json_open_line(j, "diff", '{');
    cs_put_json_scale(j, p->diff);
    cs_put_json_facts(j, p->diff->before);
    cs_json_close(j, "}");
  }
  cs_put_json_only(j, p);
  cs_json_close(j, "}");
}

// "odd":[...]: a sentence each, the same ones as in Markdown.
static void put_odd(struct cs_json_writer *j, const struct cs_profile_set *set) {
  char *text = NULL, none[] = "";
  size_t len;
  FILE *list = open_memstream(&text, &len);
  if (list != NULL) (void)cs_markdown_odd(set, MOST_ODD, list);
  bool written = list != NULL && fclose(list) == 0;
  cs_put_json_lines(j, "odd", written ? text : none, strlen("- "));
  free(text);
}

// "pool": what is said of the thread pool, if it was read.
static void put_pool(struct cs_json_writer *j, const struct cs_profile_set *set) {
  for (size_t i = 0; i < set->count; i++) {
    const struct cs_facts *f = &set->profiles[i].facts;
    char *text = NULL;
    size_t len;
    FILE *line = f->pool.scans > 0 ? open_memstream(&text, &len) : NULL;
    if (line == NULL) continue;
    if (cs_pool_has_cause(f)) {
      cs_pool_put_cause(f, line);
      (void)fputs("; ", line);
    }
    cs_pool_put(f, line);
    if (fclose(line) == 0) cs_json_text(j, "pool", text);
    free(text);
    return;
  }
}

bool cs_write_page_data(const struct cs_profile_set *set, FILE *out) {
  struct counts counts[CS_WIRE_MODES];
  struct sink s = {out, 0};
  for (size_t i = 0; i < set->count; i++) put_columns(&set->profiles[i], &counts[i], &s);
  struct cs_json_writer j = {.out = out};
  cs_json_open(&j, NULL, '{');
  cs_json_open(&j, "modes", '[');
  for (size_t i = 0; i < set->count; i++) {
    put_head(&j, &set->profiles[i], &counts[i]);
    cs_page_labels_free(&counts[i].labels);
  }
  cs_json_new_line(&j);
  cs_json_close(&j, "]");
  cs_put_json_marks(&j, set);
  if (set->profiles[0].diff == NULL) {
    put_odd(&j, set);
    put_pool(&j, set);
  }
  cs_json_close(&j, "}");
  (void)fprintf(out, "%010" PRIu64, s.written);
  return !ferror(out);
}
