// SPDX-License-Identifier: MIT
// The Firefox Profiler's processed format, version 47. Every thread has tables of its own: texts,
// functions, frames, stacks and samples; ids of the profile are mapped to a thread's as they come
// up. A span without samples of the thread is a sample without a stack. Events are markers of their
// thread (firefox_markers.c). One thread. Signal-safe: no.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/firefox_markers.h"
#include "formats/writers.h"
#include "profile/functions.h"
#include "profile/merge.h"
#include "profile/timeline.h"

#define PROCESSED_VERSION 47
#define NONE UINT32_MAX

// Ids of the profile in the order in which a thread has come to need them.
struct subset {
  uint32_t *index;  // per id: where it is in `ids`, or NONE
  uint32_t *ids;
  uint32_t count;
};

struct writer {
  const struct cs_profile *p;  // all modes' stacks in one tree
  const struct cs_profile_set *set;
  const struct cs_merged *merged;
  const struct cs_timeline *t;
  const struct cs_markers *markers;
  struct cs_json_writer *json;
  struct cs_functions functions;
  struct subset nodes, frames, funcs, texts;
};

static void subset_make(struct subset *s, size_t ids) {
  s->index = cs_allocate(ids * sizeof *s->index);
  s->ids = cs_allocate(ids * sizeof *s->ids);
  memset(s->index, 0xFF, ids * sizeof *s->index);
  s->count = 0;
}

static void subset_clear(struct subset *s) {
  for (uint32_t i = 0; i < s->count; i++) s->index[s->ids[i]] = NONE;
  s->count = 0;
}

static void subset_free(struct subset *s) {
  free(s->index);
  free(s->ids);
}

static uint32_t subset_add(struct subset *s, uint32_t id) {
  if (s->index[id] == NONE) {
    s->ids[s->count] = id;
    s->index[id] = s->count++;
  }
  return s->index[id];
}

// A node's stack, its callers before it.
static void add_stack(struct writer *w, uint32_t node) {
  const struct cs_tree *tree = &w->p->tree;
  uint32_t begin = w->nodes.count, end;
  for (uint32_t n = node; tree->nodes[n].parent != 0 && w->nodes.index[n] == NONE;
       n = tree->nodes[n].parent) {
    (void)subset_add(&w->nodes, n);
  }
  end = w->nodes.count;
  for (uint32_t i = begin; i < end; i++) {  // they came leaf first
    uint32_t id = w->nodes.ids[i], mirror = begin + (end - 1 - i);
    if (mirror <= i) break;
    w->nodes.ids[i] = w->nodes.ids[mirror];
    w->nodes.ids[mirror] = id;
  }
  for (uint32_t i = begin; i < end; i++) {
    w->nodes.index[w->nodes.ids[i]] = i;
    uint32_t frame = tree->nodes[w->nodes.ids[i]].frame;
    (void)subset_add(&w->frames, frame);
    (void)subset_add(&w->funcs, w->functions.of[frame]);
  }
}

enum column {
  STACK_PREFIX,
  STACK_FRAME,
  STACK_CATEGORY,
  FRAME_FUNC,
  FRAME_CATEGORY,
  FRAME_LINE,
  FUNC_NAME,
  FUNC_FILE,
  FUNC_RESOURCE,
  RESOURCE_NAME,
  ZERO,
  ONE,
  MINUS_ONE,
  FALSE_VALUE,
  NULL_VALUE
};

static int64_t category(const struct writer *w, uint32_t frame) {
  return (int64_t)w->p->frames[frame].kind;
}

// A cell as a number; INT64_MIN is null. Texts of a thread: its functions' names and then their
// files, both by function.
static int64_t cell(const struct writer *w, enum column column, uint32_t i) {
  const struct cs_tree *tree = &w->p->tree;
  uint32_t frame = column <= STACK_CATEGORY ? tree->nodes[w->nodes.ids[i]].frame
                   : column <= FRAME_LINE   ? w->frames.ids[i]
                                            : 0;
  switch (column) {
    case STACK_PREFIX: {
      uint32_t parent = tree->nodes[w->nodes.ids[i]].parent;
      return tree->nodes[parent].parent == 0 ? INT64_MIN : (int64_t)w->nodes.index[parent];
    }
    case STACK_FRAME:
      return w->frames.index[frame];
    case STACK_CATEGORY:
    case FRAME_CATEGORY:
      return category(w, frame);
    case FRAME_FUNC:
      return w->funcs.index[w->functions.of[frame]];
    case FRAME_LINE:
      return w->p->frames[frame].line > 0 ? (int64_t)w->p->frames[frame].line : INT64_MIN;
    case FUNC_NAME:
      return i;
    case FUNC_FILE:
      frame = w->functions.frame[w->funcs.ids[i]];
      return w->p->frames[frame].file != CS_NO_TEXT ? (int64_t)(w->funcs.count + i) : INT64_MIN;
    case FUNC_RESOURCE:
      frame = w->functions.frame[w->funcs.ids[i]];
      return w->texts.index[w->p->frames[frame].module];
    case RESOURCE_NAME:
      return 2 * (int64_t)w->funcs.count + i;
    case MINUS_ONE:
      return -1;
    case ONE:
      return 1;
    default:
      return 0;
  }
}

static void put_column(const struct writer *w, const char *name, enum column column,
                       uint32_t count) {
  cs_json_open(w->json, name, '[');
  for (uint32_t i = 0; i < count; i++) {
    int64_t value = cell(w, column, i);
    if (column == FALSE_VALUE)
      cs_json_bool(w->json, NULL, false);
    else if (column == NULL_VALUE || value == INT64_MIN)
      cs_json_null(w->json, NULL);
    else
      cs_json_int(w->json, NULL, value);
  }
  cs_json_close(w->json, "]");
}

// A table is an object of columns.
static void open_table(const struct writer *w, const char *name, size_t rows) {
  cs_json_open_line(w->json, name, '{');
  cs_json_uint(w->json, "length", rows);
}

struct table {
  const char *name;
  enum column column;
};

static void put_table(const struct writer *w, const char *name, const struct table *columns,
                      size_t column_count, uint32_t rows) {
  open_table(w, name, rows);
  for (size_t i = 0; i < column_count; i++) put_column(w, columns[i].name, columns[i].column, rows);
  cs_json_close(w->json, "}");
}

static void put_tables(const struct writer *w) {
  static const struct table stacks[] = {{"prefix", STACK_PREFIX},
                                        {"frame", STACK_FRAME},
                                        {"category", STACK_CATEGORY},
                                        {"subcategory", ZERO}};
  static const struct table frames[] = {
      {"address", MINUS_ONE},        {"inlineDepth", ZERO},          {"category", FRAME_CATEGORY},
      {"subcategory", ZERO},         {"func", FRAME_FUNC},           {"nativeSymbol", NULL_VALUE},
      {"innerWindowID", NULL_VALUE}, {"implementation", NULL_VALUE}, {"line", FRAME_LINE},
      {"column", NULL_VALUE}};
  static const struct table funcs[] = {
      {"name", FUNC_NAME},         {"isJS", FALSE_VALUE},   {"relevantForJS", FALSE_VALUE},
      {"resource", FUNC_RESOURCE}, {"fileName", FUNC_FILE}, {"lineNumber", NULL_VALUE},
      {"columnNumber", NULL_VALUE}};
  // Resources are modules; 1 is the type "library", and there is no file to be symbolicated.
  static const struct table resources[] = {
      {"lib", NULL_VALUE}, {"host", NULL_VALUE}, {"name", RESOURCE_NAME}, {"type", ONE}};
  static const struct table symbols[] = {
      {"libIndex", ZERO}, {"address", ZERO}, {"name", ZERO}, {"functionSize", ZERO}};
  put_table(w, "stackTable", stacks, CS_COUNT(stacks), w->nodes.count);
  put_table(w, "frameTable", frames, CS_COUNT(frames), w->frames.count);
  put_table(w, "funcTable", funcs, CS_COUNT(funcs), w->funcs.count);
  put_table(w, "resourceTable", resources, CS_COUNT(resources), w->texts.count);
  put_table(w, "nativeSymbols", symbols, CS_COUNT(symbols), 0);
}

static void put_name(struct cs_json_writer *j, const struct cs_profile *p, uint32_t frame) {
  char *text = NULL;
  const char *name = cs_profile_method(p, frame, NULL);
  bool suffixed = p->frames[frame].inlined && asprintf(&text, "%s (inlined)", name) >= 0;
  cs_json_text(j, NULL, suffixed ? text : name);
  if (suffixed) free(text);
}

// The texts that the columns count on: names, files (empty where there is none), modules; then the
// names of markers.
static void put_texts(const struct writer *w) {
  cs_json_open_line(w->json, "stringArray", '[');
  for (uint32_t i = 0; i < w->funcs.count; i++) {
    if (i > 0) cs_json_new_line(w->json);
    put_name(w->json, w->p, w->functions.frame[w->funcs.ids[i]]);
  }
  for (uint32_t i = 0; i < w->funcs.count; i++) {
    const char *file = cs_profile_file(w->p, w->functions.frame[w->funcs.ids[i]], NULL);
    cs_json_text(w->json, NULL, file != NULL ? file : "");
  }
  for (uint32_t i = 0; i < w->texts.count; i++)
    cs_json_text(w->json, NULL, cs_strings_get(&w->p->strings, w->texts.ids[i], NULL));
  for (size_t i = 0; i < CS_FIREFOX_SCHEMAS; i++)
    cs_json_text(w->json, NULL, cs_firefox_marker_name(i));
  cs_json_close(w->json, "]");
}

enum sample_column { SAMPLE_STACK, SAMPLE_TIME, SAMPLE_WEIGHT, SAMPLE_CPU };

// In milliseconds.
static void put_ms(const struct writer *w, uint64_t ns) {
  cs_json_decimal(w->json, NULL, ns, 6);
}

static void put_sample(const struct writer *w, const struct cs_span *span,
                       enum sample_column column) {
  uint64_t length = span->end_ns - span->begin_ns;
  switch (column) {
    case SAMPLE_STACK:
      if (w->p->tree.nodes[span->leaf].parent == 0)
        cs_json_null(w->json, NULL);  // no frames at all
      else
        cs_json_uint(w->json, NULL, w->nodes.index[span->leaf]);
      break;
    case SAMPLE_TIME:
      put_ms(w, span->begin_ns);
      break;
    case SAMPLE_WEIGHT:
      put_ms(w, length);
      break;
    default:
      cs_json_uint(w->json, NULL, span->asleep ? 0 : length / 1000);
  }
}

static void put_gap(const struct writer *w, uint64_t at, enum sample_column column) {
  if (column == SAMPLE_STACK)
    cs_json_null(w->json, NULL);
  else if (column == SAMPLE_TIME)
    put_ms(w, at);
  else
    cs_json_uint(w->json, NULL, 0);
}

static uint64_t put_sample_column(const struct writer *w, uint32_t thread, const char *name,
                                  enum sample_column column) {
  uint64_t at = 0, rows = 0;
  cs_json_open_line(w->json, name, '[');
  for (size_t i = w->t->first[thread]; i < w->t->first[thread + 1]; i++, rows++) {
    const struct cs_span *span = &w->t->spans[i];
    if (span->begin_ns > at) {
      put_gap(w, at, column);
      rows++;
    }
    put_sample(w, span, column);
    at = span->end_ns;
  }
  cs_json_close(w->json, "]");
  return rows;
}

static void put_samples(const struct writer *w, uint32_t thread) {
  cs_json_open_line(w->json, "samples", '{');
  cs_json_text(w->json, "weightType", "tracing-ms");
  (void)put_sample_column(w, thread, "stack", SAMPLE_STACK);
  (void)put_sample_column(w, thread, "time", SAMPLE_TIME);
  (void)put_sample_column(w, thread, "weight", SAMPLE_WEIGHT);
  cs_json_uint(w->json, "length", put_sample_column(w, thread, "threadCPUDelta", SAMPLE_CPU));
  cs_json_close(w->json, "}");
}

// Phases: 0 a moment, 1 with a beginning and an end.
enum marker_column { MARK_CATEGORY, MARK_DATA, MARK_END, MARK_NAME, MARK_PHASE, MARK_START };

// Returns where it is in the merged tree, or UINT32_MAX if it is in no frame.
static uint32_t marker_node(const struct writer *w, const struct cs_marker *m) {
  size_t profile = (size_t)(m->profile - w->set->profiles);
  uint32_t node = w->merged->node[profile][cs_firefox_marker_place(m)];
  return w->p->tree.nodes[node].parent != 0 ? node : UINT32_MAX;
}

static void put_marker(const struct writer *w, size_t i, enum marker_column column) {
  const struct cs_marker *m = &w->markers->all[i];
  bool moment = m->begin_ns == m->end_ns;
  uint32_t node = UINT32_MAX;
  switch (column) {
    case MARK_CATEGORY:
      cs_json_uint(w->json, NULL, CS_KIND_TYPE);
      break;
    case MARK_DATA:
      node = marker_node(w, m);
      cs_put_firefox_marker(w->json, m, node != UINT32_MAX ? w->nodes.index[node] : UINT32_MAX);
      break;
    case MARK_END:
      if (moment)
        cs_json_null(w->json, NULL);
      else
        put_ms(w, m->end_ns);
      break;
    case MARK_NAME:
      cs_json_uint(w->json, NULL,
                   (size_t)2 * w->funcs.count + w->texts.count + cs_firefox_marker_schema(m));
      break;
    case MARK_PHASE:
      cs_json_uint(w->json, NULL, moment ? 0 : 1);
      break;
    default:
      put_ms(w, m->begin_ns);
  }
}

static void put_markers(const struct writer *w, uint32_t thread) {
  static const char *const columns[] = {"category", "data",  "endTime",
                                        "name",     "phase", "startTime"};
  size_t first = w->markers->first[thread], end = w->markers->first[thread + 1];
  open_table(w, "markers", end - first);
  for (int c = 0; c < (int)CS_COUNT(columns); c++) {
    cs_json_open(w->json, columns[c], '[');
    for (size_t i = first; i < end; i++) put_marker(w, i, (enum marker_column)c);
    cs_json_close(w->json, "]");
  }
  cs_json_close(w->json, "}");
}

static void put_thread_facts(const struct writer *w, const struct cs_profile_thread *t) {
  const struct cs_profile *p = w->p;
  struct cs_json_writer *j = w->json;
  char pid[16];
  const char *name = cs_strings_get(&p->strings, t->name, NULL);
  (void)snprintf(pid, sizeof pid, "%" PRIu32, p->facts.pid);
  cs_json_text(j, "name", name[0] != '\0' ? name : "thread");
  cs_json_bool(j, "isMainThread", t->tid == p->facts.pid);
  cs_json_bool(j, "showMarkersInTimeline", true);
  CS_JSON_TEXTS(j, {"processType", "default"}, {"processName", "dotnet"});
  cs_json_uint(j, "processStartupTime", 0);
  cs_json_null(j, "processShutdownTime");
  cs_json_uint(j, "registerTime", 0);
  cs_json_null(j, "unregisterTime");
  put_column(w, "pausedRanges", ZERO, 0);
  cs_json_text(j, "pid", pid);
  cs_json_uint(j, "tid", t->tid);
}

static void put_thread(struct writer *w, uint32_t thread) {
  for (size_t i = w->t->first[thread]; i < w->t->first[thread + 1]; i++)
    add_stack(w, w->t->spans[i].leaf);
  for (size_t i = w->markers->first[thread]; i < w->markers->first[thread + 1]; i++) {
    uint32_t node = marker_node(w, &w->markers->all[i]);
    if (node != UINT32_MAX) add_stack(w, node);
  }
  for (uint32_t i = 0; i < w->funcs.count; i++)
    (void)subset_add(&w->texts, w->p->frames[w->functions.frame[w->funcs.ids[i]]].module);
  cs_json_open_line(w->json, NULL, '{');
  put_thread_facts(w, &w->p->threads[thread]);
  put_tables(w);
  put_texts(w);
  put_markers(w, thread);
  put_samples(w, thread);
  cs_json_close(w->json, "}");
  subset_clear(&w->nodes);
  subset_clear(&w->frames);
  subset_clear(&w->funcs);
  subset_clear(&w->texts);
}

static void put_categories(struct cs_json_writer *j) {
  static const char *const colors[] = {"orange", "blue",      "purple", "green", "grey",
                                       "red",    "lightblue", "yellow", "brown"};
  _Static_assert(CS_COUNT(colors) == CS_KIND_COUNT, "a colour for every kind");
  cs_json_open(j, "categories", '[');
  for (int k = 0; k < CS_KIND_COUNT; k++) {
    cs_json_open(j, NULL, '{');
    CS_JSON_TEXTS(j, {"name", cs_kind_label((enum cs_profile_kind)k)}, {"color", colors[k]});
    cs_json_open(j, "subcategories", '[');
    cs_json_text(j, NULL, "Other");
    cs_json_close(j, "]}");
  }
  cs_json_close(j, "]");
}

static void put_meta(const struct writer *w) {
  const struct cs_profile *p = w->p;
  struct cs_json_writer *j = w->json;
  static const char *const yes[] = {"symbolicated", "usesOnlyOneStackType",
                                    "doesNotUseFrameImplementation", "sourceCodeIsNotOnSearchfox"};
  static const struct table extensions[] = {{"baseURL", ZERO}, {"id", ZERO}, {"name", ZERO}};
  cs_json_open(j, "meta", '{');
  CS_JSON_UINTS(j, {"version", 27}, {"preprocessedProfileVersion", PROCESSED_VERSION});
  cs_json_fixed(j, "interval", p->facts.hz > 0 ? 1000.0 / p->facts.hz : 1.0, 6);
  cs_json_decimal(j, "startTime", p->facts.start_ns, 6);
  CS_JSON_UINTS(j, {"processType", 0}, {"stackwalk", 1});
  CS_JSON_TEXTS(j, {"product", p->facts.program}, {"importedFrom", "clrsnap " CLRSNAP_VERSION});
  cs_json_bool(j, "debug", false);
  for (size_t i = 0; i < CS_COUNT(yes); i++) cs_json_bool(j, yes[i], true);
  put_table(w, "extensions", extensions, CS_COUNT(extensions), 0);
  cs_json_open(j, "sampleUnits", '{');
  CS_JSON_TEXTS(j, {"time", "ms"}, {"eventDelay", "ms"}, {"threadCPUDelta", "\u00b5s"});
  cs_json_close(j, "}");
  cs_put_firefox_schemas(j);
  put_categories(j);
  cs_json_close(j, "}");
}

// Its samples, of cpu or wall, in the merged tree; all other modes are markers.
static void take_samples(struct cs_profile *samples, const struct cs_profile_set *set,
                         const struct cs_merged *merged) {
  const struct cs_profile *first = &set->profiles[0];
  *samples = merged->profile;
  samples->samples = cs_allocate((first->sample_count + 1) * sizeof *samples->samples);
  if (!cs_mode_of(&first->facts)->timed) return;
  samples->sample_count = first->sample_count;
  for (size_t i = 0; i < first->sample_count; i++) {
    samples->samples[i] = first->samples[i];
    samples->samples[i].leaf = merged->node[0][first->samples[i].leaf];
  }
}

static void put_threads(struct writer *w) {
  subset_make(&w->nodes, w->p->tree.count);
  subset_make(&w->frames, w->p->frame_count);
  subset_make(&w->funcs, w->functions.count);
  subset_make(&w->texts, w->p->strings.count);
  for (uint32_t i = 0; i < w->p->thread_count; i++) {
    if (w->t->first[i] == w->t->first[i + 1] && w->markers->first[i] == w->markers->first[i + 1])
      continue;
    put_thread(w, i);
  }
  subset_free(&w->nodes);
  subset_free(&w->frames);
  subset_free(&w->funcs);
  subset_free(&w->texts);
}

bool cs_write_firefox(const struct cs_profile_set *set, FILE *out) {
  static const char *const empty[] = {"libs", "pages", "counters", "profilerOverhead"};
  struct cs_profile samples;
  struct cs_timeline t;
  struct cs_markers markers;
  struct cs_merged merged;
  cs_merge(&merged, set);
  take_samples(&samples, set, &merged);
  cs_timeline_make(&t, &samples, false);
  cs_markers_make(&markers, set);
  struct cs_json_writer j = {.out = out};
  struct writer w = {
      .p = &samples, .set = set, .merged = &merged, .t = &t, .markers = &markers, .json = &j};
  cs_functions_make(&w.functions, &samples, true);
  cs_json_open(&j, NULL, '{');
  put_meta(&w);
  cs_json_new_line(&j);
  for (size_t i = 0; i < CS_COUNT(empty); i++) put_column(&w, empty[i], ZERO, 0);
  cs_json_open(&j, "threads", '[');
  put_threads(&w);
  bool written = cs_json_end(&j, "]}");
  cs_functions_free(&w.functions);
  cs_timeline_free(&t);
  cs_markers_free(&markers);
  free(samples.samples);
  cs_merged_free(&merged);
  return written;
}
