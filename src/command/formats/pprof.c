// SPDX-License-Identifier: MIT
// pprof's profile, by protobuf-c, gzipped. A sample is a distinct stack of one thread; a location
// is a frame with what was inlined into it, so a method recorded by line has one for each line; a
// mapping is a module. Invariant: ids are indices + 1, because 0 means none. One thread.
// Signal-safe: no.
#include <stdlib.h>
#include <string.h>

#include "formats/writers.h"
#include "pprof.pb-c.h"
#include "profile/functions.h"
#include "profile/locations.h"
#include "profile/merge.h"
#include "profile/timeline.h"
#include "util/arena.h"
#include "util/gzip.h"

enum { OWN_LABELS = 4 };  // of an Activity: trace, span, endpoint, status

// The messages of the profile are in a few arrays, of the arena. Repeated fields need arrays of
// pointers.
struct builder {
  const struct cs_profile_set *set;
  const struct cs_merged *merged;  // the stacks of its profile are the samples
  const struct cs_profile *p;      // merged->profile
  struct cs_functions functions;
  struct cs_locations places;
  struct cs_strings strings;
  struct cs_arena arena;
  uint32_t *thread;  // per node
  Pprof__Profile out;
  Pprof__ValueType types[2 * CS_WIRE_MODES], *type_refs[2 * CS_WIRE_MODES];
  Pprof__Mapping *mappings;
  struct cs_map mapping_ids;  // module's string id -> index
  Pprof__Sample *samples;
  Pprof__Label **labels;         // two per thread
  Pprof__Label *own_labels;      // OWN_LABELS per Activity
  Pprof__Label **sample_labels;  // 2 + OWN_LABELS places per sample under one
  int64_t *values;               // as many as there are types for each sample
  char **texts;
};

static void *take(struct builder *b, size_t count, size_t size) {
  return cs_arena_take(&b->arena, count, size);
}

static int64_t text_id(struct builder *b, const char *data, size_t len) {
  return cs_strings_add_plain(&b->strings, data, len);
}

static int64_t word(struct builder *b, const char *text) {
  return text_id(b, text, strlen(text));
}

static void add_type(struct builder *b, const char *type, const char *unit) {
  Pprof__ValueType *t = &b->types[b->out.n_sample_type];
  pprof__value_type__init(t);
  t->type = word(b, type);
  t->unit = word(b, unit);
  b->type_refs[b->out.n_sample_type++] = t;
}

// For each mode the number of samples and what they stand for; if that is a number of events, only
// those. The first mode's last type is the default.
static void add_types(struct builder *b) {
  Pprof__Profile *out = &b->out;
  out->sample_type = b->type_refs;
  for (size_t i = 0; i < b->set->count; i++) {
    const struct cs_mode *mode = cs_mode_of(&b->set->profiles[i].facts);
    add_type(b, mode->count, "count");
    if (mode->weight != NULL) add_type(b, mode->weight, cs_unit_name(mode->unit));
    if (i == 0) out->default_sample_type = b->types[out->n_sample_type - 1].type;
  }
  const struct cs_facts *first = &b->p->facts;
  if (cs_mode_of(first)->timed) {
    out->period_type = &b->types[1];
    out->period = first->hz > 0 ? 1000000000 / first->hz : 0;
  }
  out->time_nanos = (int64_t)first->start_ns;
  out->duration_nanos = (int64_t)first->duration_ns;
}

static void add_mapping(struct builder *b, uint32_t frame, uint64_t *id) {
  bool added;
  uint32_t i =
      cs_map_put(&b->mapping_ids, b->p->frames[frame].module, (uint32_t)b->out.n_mapping, &added);
  *id = i + 1;
  Pprof__Mapping *m = &b->mappings[i];
  if (added) {
    size_t len;
    const char *module = cs_profile_module(b->p, frame, &len);
    pprof__mapping__init(m);
    m->id = i + 1;
    m->filename = text_id(b, module, len);
    m->has_functions = 1;  // otherwise pprof looks for the file and its symbols
    b->out.mapping[b->out.n_mapping++] = m;
  }
  if (b->p->frames[frame].file != CS_NO_TEXT) m->has_filenames = m->has_line_numbers = 1;
}

static void add_functions(struct builder *b) {
  Pprof__Function *functions = take(b, b->functions.count, sizeof *functions);
  b->out.function = take(b, b->functions.count, sizeof *b->out.function);
  for (uint32_t i = 0; i < b->functions.count; i++) {
    Pprof__Function *f = &functions[i];
    uint32_t frame = b->functions.frame[i];
    size_t len;
    const char *name = cs_profile_method(b->p, frame, &len);
    pprof__function__init(f);
    f->id = i + 1;
    // No system_name: pprof takes it for a C++ name and drops the generic arguments.
    f->name = text_id(b, name, len);
    const char *file = cs_profile_file(b->p, frame, &len);
    if (file != NULL) f->filename = text_id(b, file, len);
    b->out.function[b->out.n_function++] = f;
  }
}

static void add_locations(struct builder *b) {
  const struct cs_locations *places = &b->places;
  size_t frames = b->p->frame_count;
  Pprof__Line *lines = take(b, frames, sizeof *lines);
  Pprof__Line **line = take(b, places->lines, sizeof *line);
  Pprof__Location *locations = take(b, places->count, sizeof *locations);
  b->out.location = take(b, places->count, sizeof *b->out.location);
  b->mappings = take(b, frames, sizeof *b->mappings);
  b->out.mapping = take(b, frames, sizeof *b->out.mapping);
  for (size_t i = 0; i < frames; i++) {
    pprof__line__init(&lines[i]);
    lines[i].function_id = b->functions.of[i] + 1;
    lines[i].line = b->p->frames[i].line;
  }
  for (uint32_t i = 0; i < places->count; i++) {
    Pprof__Location *l = &locations[i];
    pprof__location__init(l);
    l->id = i + 1;
    l->line = line;
    for (uint32_t at = i; at != CS_NO_LOCATION; at = places->items[at].outer) {
      l->line[l->n_line++] = &lines[places->items[at].frame];
      add_mapping(b, places->items[at].frame, &l->mapping_id);  // the outermost frame's stays
    }
    line += l->n_line;
    b->out.location[b->out.n_location++] = l;
  }
}

static void add_labels(struct builder *b) {
  int64_t thread = word(b, "thread"), tid = word(b, "tid");
  Pprof__Label *labels = take(b, 2 * b->p->thread_count, sizeof *labels);
  b->labels = take(b, 2 * b->p->thread_count, sizeof *b->labels);
  for (size_t i = 0; i < b->p->thread_count; i++) {
    const struct cs_profile_thread *t = &b->p->threads[i];
    size_t len;
    const char *name = cs_strings_get(&b->p->strings, t->name, &len);
    Pprof__Label *l = &labels[2 * i];
    pprof__label__init(&l[0]);
    pprof__label__init(&l[1]);
    l[0].key = thread;
    l[0].str = text_id(b, name, len);
    l[1].key = tid;
    l[1].num = t->tid;
    // A thread without a name has no name label: an empty string means none.
    b->labels[2 * i] = len > 0 ? &l[0] : &l[1];
    b->labels[2 * i + 1] = &l[1];
  }
}

static size_t depth_of(const struct cs_tree *tree, uint32_t node) {
  size_t depth = 0;
  for (; tree->nodes[node].parent != 0; node = tree->nodes[node].parent) depth++;
  return depth;
}

// The sums of a stack's samples under one Activity, or under none.
struct values {
  const uint64_t *samples, *weight;  // per mode
};

static Pprof__Sample *add_sample(struct builder *b, uint32_t node, uint64_t *ids, size_t id_count,
                                 struct values values) {
  size_t index = b->out.n_sample++;
  Pprof__Sample *s = &b->samples[index];
  pprof__sample__init(s);
  s->location_id = ids;
  s->n_location_id = id_count;
  s->value = &b->values[b->out.n_sample_type * index];
  for (size_t i = 0; i < b->set->count; i++) {
    bool counted = cs_mode_of(&b->set->profiles[i].facts)->weight == NULL;
    if (!counted) s->value[s->n_value++] = (int64_t)values.samples[i];
    s->value[s->n_value++] = (int64_t)values.weight[i];
  }
  size_t thread = b->thread[node];
  bool named = b->labels[2 * thread] != b->labels[2 * thread + 1];
  s->label = &b->labels[2 * thread + (named ? 0 : 1)];
  s->n_label = named ? 2 : 1;
  b->out.sample[index] = s;
  return s;
}

static void set_text(struct builder *b, Pprof__Label *l, int64_t key, const char *text) {
  pprof__label__init(l);
  l->key = key;
  l->str = word(b, text);
}

// An empty string means no label, and so does the number 0.
static void add_own_labels(struct builder *b) {
  uint32_t count = b->p->labels != NULL ? cs_labels_count(b->p->labels) : 0;
  b->own_labels = take(b, OWN_LABELS * (size_t)count, sizeof *b->own_labels);
  if (b->p->labelled.count == 0) return;
  int64_t trace = word(b, "trace_id"), span = word(b, "span_id");
  int64_t endpoint = word(b, "endpoint"), status = word(b, "http_status");
  for (size_t k = 0; k < b->p->labelled.count; k++) {
    uint32_t i = b->p->labelled.items[k].label;
    Pprof__Label *l = &b->own_labels[OWN_LABELS * i];
    if (l->key != 0) continue;
    struct cs_label label = cs_labels_get(b->p->labels, i);
    struct cs_label_text text = cs_label_in_hex(&label);
    set_text(b, &l[0], trace, text.trace);
    set_text(b, &l[1], span, text.span);
    set_text(b, &l[2], endpoint, b->merged->endpoints[i]);
    set_text(b, &l[3], status, "");
    l[3].num = b->merged->statuses[i];
  }
}

// Adds the Activity's labels to those of the thread.
static void label_sample(struct builder *b, Pprof__Sample *s, uint32_t label,
                         Pprof__Label **places) {
  memcpy(places, s->label, s->n_label * sizeof *places);
  s->label = places;
  Pprof__Label *own = &b->own_labels[OWN_LABELS * label];
  for (Pprof__Label *l = own; l < own + OWN_LABELS; l++)
    if (l->str != 0 || l->num != 0) places[s->n_label++] = l;
}

// A stack is a sample under each Activity, and one under none.
static void add_stack(struct builder *b, uint32_t node, uint64_t *ids, size_t id_count) {
  const struct cs_label_sums *sums = &b->p->labelled;
  uint64_t samples[CS_WIRE_MODES], weight[CS_WIRE_MODES], left = b->p->tree.nodes[node].samples;
  size_t modes = b->set->count;
  memcpy(samples, &b->merged->samples[node * modes], modes * sizeof *samples);
  memcpy(weight, &b->merged->weight[node * modes], modes * sizeof *weight);
  for (size_t k = cs_label_sums_find(sums, node, CS_NO_LABEL);
       k < sums->count && sums->items[k].node == node; k++) {
    const struct values own = {&b->merged->label_samples[k * modes],
                               &b->merged->label_weight[k * modes]};
    label_sample(b, add_sample(b, node, ids, id_count, own), sums->items[k].label,
                 &b->sample_labels[(2 + OWN_LABELS) * k]);
    for (size_t i = 0; i < modes; i++) samples[i] -= own.samples[i], weight[i] -= own.weight[i];
    left -= sums->items[k].samples;
  }
  if (left > 0) (void)add_sample(b, node, ids, id_count, (struct values){samples, weight});
}

static void add_samples(struct builder *b) {
  const struct cs_tree *tree = &b->p->tree;
  size_t count = b->p->labelled.count, depths = 0;
  for (uint32_t i = 1; i < tree->count; i++) {
    if (tree->nodes[i].samples == 0) continue;
    count++;
    depths += depth_of(tree, i);
  }
  uint64_t *ids = take(b, depths, sizeof *ids);  // of all samples' locations
  b->samples = take(b, count, sizeof *b->samples);
  b->out.sample = take(b, count, sizeof *b->out.sample);
  b->values = take(b, b->out.n_sample_type * count, sizeof *b->values);
  b->sample_labels = take(b, (2 + OWN_LABELS) * b->p->labelled.count, sizeof *b->sample_labels);
  for (uint32_t i = 1; i < tree->count; i++) {
    if (tree->nodes[i].samples == 0) continue;
    size_t own = 0;
    for (uint32_t n = i; tree->nodes[n].parent != 0; n = tree->nodes[n].parent) {
      ids[own++] = b->places.of[n] + 1;
      n = cs_locations_base(&b->places, tree, n);
    }
    add_stack(b, i, ids, own);
    ids += own;
  }
}

// Strings come last, because they move until then.
static void add_strings(struct builder *b) {
  b->texts = cs_strings_table(&b->strings);
  b->out.string_table = b->texts;
  b->out.n_string_table = b->strings.count;
}

static void build(struct builder *b) {
  pprof__profile__init(&b->out);
  (void)cs_strings_add(&b->strings, "", 0);
  cs_functions_make(&b->functions, b->p, false);
  cs_locations_make(&b->places, b->p);
  b->thread = cs_node_threads(&b->p->tree);
  add_types(b);
  add_functions(b);
  add_locations(b);
  add_labels(b);
  add_own_labels(b);
  add_samples(b);
  add_strings(b);
}

static void clean_up(struct builder *b) {
  cs_arena_free(&b->arena);
  free(b->thread);
  free(b->texts);
  cs_functions_free(&b->functions);
  cs_locations_free(&b->places);
  cs_strings_free(&b->strings);
  cs_map_free(&b->mapping_ids);
}

bool cs_write_pprof(const struct cs_profile_set *set, FILE *out) {
  struct cs_merged merged;
  cs_merge(&merged, set);
  struct builder b = {.set = set, .merged = &merged, .p = &merged.profile};
  build(&b);
  size_t size = pprof__profile__get_packed_size(&b.out);
  uint8_t *packed = cs_allocate(size);
  (void)pprof__profile__pack(&b.out, packed);
  bool written = cs_write_gzip(packed, size, out);
  free(packed);
  clean_up(&b);
  cs_merged_free(&merged);
  return written;
}
