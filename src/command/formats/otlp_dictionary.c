// SPDX-License-Identifier: MIT
// The tables, by protobuf-c, which wants arrays of pointers: each table has one of messages and one
// of pointers to them, both as large as they can become. One thread. Signal-safe: no.
#include "formats/otlp_dictionary.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static int32_t text_id(struct cs_otlp_dictionary *d, const char *data, size_t len) {
  return (int32_t)cs_strings_add_plain(&d->strings, data, len);
}

int32_t cs_otlp_word(struct cs_otlp_dictionary *d, const char *text) {
  return text_id(d, text, strlen(text));
}

// ---- What a frame is ----

static int32_t mapping_of(struct cs_otlp_dictionary *d, uint32_t frame) {
  bool added;
  size_t len;
  const char *module = cs_profile_module(d->p, frame, &len);
  if (len == 0) return 0;
  uint32_t i = cs_map_put(&d->mapping_ids, d->p->frames[frame].module,
                          (uint32_t)d->message.n_mapping_table, &added);
  if (added) {
    otlp__mapping__init(&d->mappings[i]);
    d->mappings[i].filename_strindex = text_id(d, module, len);
    d->message.mapping_table[d->message.n_mapping_table++] = &d->mappings[i];
  }
  return (int32_t)i;
}

// Functions of one name in two modules are one: the module belongs to the location.
static int32_t add_function(struct cs_otlp_dictionary *d, uint32_t frame) {
  size_t len;
  bool added;
  const char *name = cs_profile_method(d->p, frame, &len);
  int32_t name_id = text_id(d, name, len);
  const char *file = cs_profile_file(d->p, frame, &len);
  int32_t file_id = file != NULL ? text_id(d, file, len) : 0;
  uint32_t i = cs_map_put(&d->function_ids, (uint64_t)name_id << 32 | (uint32_t)file_id,
                          (uint32_t)d->message.n_function_table, &added);
  if (!added) return (int32_t)i;
  Otlp__Function *f = &d->function_messages[i];
  otlp__function__init(f);
  f->name_strindex = name_id;
  f->filename_strindex = file_id;
  d->message.function_table[d->message.n_function_table++] = f;
  return (int32_t)i;
}

static void add_functions(struct cs_otlp_dictionary *d) {
  size_t most = d->p->frame_count + 1;
  d->function_messages = cs_arena_take(d->arena, most, sizeof *d->function_messages);
  d->message.function_table = cs_arena_take(d->arena, most, sizeof *d->message.function_table);
  d->function_of = cs_arena_take(d->arena, most, sizeof *d->function_of);
  otlp__function__init(&d->function_messages[0]);
  d->message.function_table[0] = &d->function_messages[0];
  d->message.n_function_table = 1;
  for (uint32_t i = 0; i < d->functions.count; i++)
    d->function_of[i] = add_function(d, d->functions.frame[i]);
}

static Otlp__Line *make_lines(struct cs_otlp_dictionary *d) {
  Otlp__Line *lines = cs_arena_take(d->arena, d->p->frame_count + 1, sizeof *lines);
  for (uint32_t i = 0; i < d->p->frame_count; i++) {
    otlp__line__init(&lines[i]);
    lines[i].function_index = d->function_of[d->functions.of[i]];
    lines[i].line = d->p->frames[i].line;
  }
  return lines;
}

static void open_mappings(struct cs_otlp_dictionary *d) {
  size_t most = d->p->frame_count + 1;
  d->mappings = cs_arena_take(d->arena, most, sizeof *d->mappings);
  d->message.mapping_table = cs_arena_take(d->arena, most, sizeof *d->message.mapping_table);
  otlp__mapping__init(&d->mappings[0]);
  d->message.mapping_table[0] = &d->mappings[0];
  d->message.n_mapping_table = 1;
}

static void add_locations(struct cs_otlp_dictionary *d) {
  const struct cs_locations *places = &d->places;
  size_t count = places->count + 1;
  Otlp__Location *locations = cs_arena_take(d->arena, count, sizeof *locations);
  Otlp__Location **table = cs_arena_take(d->arena, count, sizeof *table);
  Otlp__Line *lines = make_lines(d);
  Otlp__Line **next = cs_arena_take(d->arena, places->lines, sizeof *next);
  otlp__location__init(&locations[0]);
  table[0] = &locations[0];
  for (uint32_t i = 0; i < places->count; i++) {
    Otlp__Location *l = &locations[i + 1];
    otlp__location__init(l);
    l->lines = next;
    for (uint32_t at = i; at != CS_NO_LOCATION; at = places->items[at].outer) {
      l->lines[l->n_lines++] = &lines[places->items[at].frame];
      l->mapping_index = mapping_of(d, places->items[at].frame);  // the outermost frame's stays
    }
    next += l->n_lines;
    table[i + 1] = l;
  }
  d->message.location_table = table;
  d->message.n_location_table = count;
}

// ---- Attributes ----

void cs_otlp_set_text(Otlp__AnyValue *value, const char *text) {
  otlp__any_value__init(value);
  value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
  value->string_value = (char *)(uintptr_t)text;
}

void cs_otlp_set_number(Otlp__AnyValue *value, int64_t number) {
  otlp__any_value__init(value);
  value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
  value->int_value = number;
}

static void open_attributes(struct cs_otlp_dictionary *d, size_t labels) {
  size_t most =
      CS_OTLP_THREAD_ATTRIBUTES * d->p->thread_count + CS_OTLP_REQUEST_ATTRIBUTES * labels + 1;
  d->attributes = cs_arena_take(d->arena, most, sizeof *d->attributes);
  d->attribute_values = cs_arena_take(d->arena, most, sizeof *d->attribute_values);
  d->message.attribute_table = cs_arena_take(d->arena, most, sizeof *d->message.attribute_table);
  otlp__key_value_and_unit__init(&d->attributes[0]);
  d->message.attribute_table[0] = &d->attributes[0];
  d->message.n_attribute_table = 1;
}

// Returns the entry for this attribute. Thread names repeat (thread pool), and so do tids.
static int32_t attribute(struct cs_otlp_dictionary *d, int32_t key, uint32_t number) {
  bool added;
  uint32_t i = cs_map_put(&d->attribute_ids, (uint64_t)(uint32_t)key << 32 | number,
                          (uint32_t)d->message.n_attribute_table, &added);
  if (!added) return (int32_t)i;
  Otlp__KeyValueAndUnit *a = &d->attributes[d->message.n_attribute_table++];
  otlp__key_value_and_unit__init(a);
  a->key_strindex = key;
  a->value = &d->attribute_values[i];
  cs_otlp_set_number(a->value, number);
  d->message.attribute_table[i] = a;
  return (int32_t)i;
}

// The pool of strings moves while it grows, so the number is kept until the pool is complete.
static int32_t text_attribute(struct cs_otlp_dictionary *d, int32_t key, const char *text,
                              size_t len) {
  bool added;
  int32_t i = attribute(d, key, (uint32_t)text_id(d, text, len));
  (void)cs_map_put(&d->text_values, (uint64_t)i, 0, &added);
  return i;
}

static void set_texts(struct cs_otlp_dictionary *d) {
  uint32_t nothing;
  for (size_t i = 1; i < d->message.n_attribute_table; i++) {
    Otlp__AnyValue *value = &d->attribute_values[i];
    if (cs_map_get(&d->text_values, i, &nothing))
      cs_otlp_set_text(value, d->texts[value->int_value]);
  }
}

// ---- Threads ----

// Only of threads that have samples: most threads of a program that starts many have none.
static void add_thread(struct cs_otlp_dictionary *d, size_t thread,
                       const int32_t keys[CS_OTLP_THREAD_ATTRIBUTES]) {
  const struct cs_profile_thread *t = &d->p->threads[thread];
  int32_t *mine = &d->thread_attributes[CS_OTLP_THREAD_ATTRIBUTES * thread];
  size_t len;
  const char *name = cs_strings_get(&d->p->strings, t->name, &len);
  if (mine[1] != 0) return;
  if (len > 0) mine[0] = text_attribute(d, keys[0], name, len);
  mine[1] = attribute(d, keys[1], t->tid);
}

static void add_threads(struct cs_otlp_dictionary *d, const uint32_t *threads) {
  d->thread_attributes = cs_arena_take(d->arena, CS_OTLP_THREAD_ATTRIBUTES * d->p->thread_count,
                                       sizeof *d->thread_attributes);
  const int32_t keys[] = {cs_otlp_word(d, "thread.name"), cs_otlp_word(d, "thread.id")};
  for (uint32_t i = 1; i < d->p->tree.count; i++)
    if (d->p->tree.nodes[i].samples != 0) add_thread(d, threads[i], keys);
}

size_t cs_otlp_thread(const struct cs_otlp_dictionary *d, uint32_t thread, int32_t **attributes) {
  int32_t *mine = &d->thread_attributes[CS_OTLP_THREAD_ATTRIBUTES * thread];
  bool named = mine[0] != 0;
  *attributes = named ? mine : mine + 1;
  return named ? 2 : 1;
}

// ---- Requests ----

// By OpenTelemetry's conventions. The endpoint is "GET /cart/{id}", or "GET|HEAD /cart/{id}" or
// "/cart/{id}", which do not say which method the request has.
static void add_request(struct cs_otlp_dictionary *d, uint32_t label, const char *endpoint,
                        uint16_t status) {
  int32_t *mine = &d->request_attributes[CS_OTLP_REQUEST_ATTRIBUTES * label];
  struct cs_label own = cs_labels_get(d->p->labels, label);
  const char *route = strchr(endpoint, '/');
  size_t method = route != NULL && route > endpoint ? (size_t)(route - endpoint) - 1 : 0;
  // Without a request it is a job, and the link's span has its name.
  if (cs_label_request(&own) == 0) return;
  if (method > 0 && memchr(endpoint, '|', method) == NULL)
    mine[0] = text_attribute(d, cs_otlp_word(d, "http.request.method"), endpoint, method);
  if (route != NULL)
    mine[1] = text_attribute(d, cs_otlp_word(d, "http.route"), route, strlen(route));
  if (status != 0) mine[2] = attribute(d, cs_otlp_word(d, "http.response.status_code"), status);
}

static void add_requests(struct cs_otlp_dictionary *d, const struct cs_merged *merged,
                         size_t labels) {
  const struct cs_label_sums *sums = &d->p->labelled;
  bool *done = cs_arena_take(d->arena, labels, sizeof *done);
  d->request_attributes =
      cs_arena_take(d->arena, CS_OTLP_REQUEST_ATTRIBUTES * labels, sizeof *d->request_attributes);
  for (size_t k = 0; k < sums->count; k++) {
    uint32_t label = sums->items[k].label;
    if (!done[label]) add_request(d, label, merged->endpoints[label], merged->statuses[label]);
    done[label] = true;
  }
}

size_t cs_otlp_request(const struct cs_otlp_dictionary *d, uint32_t label,
                       int32_t attributes[CS_OTLP_REQUEST_ATTRIBUTES]) {
  const int32_t *mine = &d->request_attributes[CS_OTLP_REQUEST_ATTRIBUTES * label];
  size_t count = 0;
  for (int i = 0; i < CS_OTLP_REQUEST_ATTRIBUTES; i++)
    if (mine[i] != 0) attributes[count++] = mine[i];
  return count;
}

// ---- Links ----

// To the Activities that samples were taken under. Several labels may have one: routing finds the
// endpoint while an Activity goes on.
static void add_links(struct cs_otlp_dictionary *d, size_t labels) {
  const struct cs_label_sums *sums = &d->p->labelled;
  size_t most = sums->count + 1;
  struct cs_label *linked = cs_arena_take(d->arena, most, sizeof *linked);
  Otlp__Link *links = cs_arena_take(d->arena, most, sizeof *links);
  Otlp__Link **table = cs_arena_take(d->arena, most, sizeof *table);
  struct cs_strings known = {0};
  d->link_of = cs_arena_take(d->arena, labels, sizeof *d->link_of);
  otlp__link__init(&links[0]);
  table[0] = &links[0];
  (void)cs_strings_add(&known, "", 0);
  for (size_t k = 0; k < sums->count; k++) {
    int32_t *place = &d->link_of[sums->items[k].label];
    if (*place != 0) continue;
    struct cs_label label = cs_labels_get(d->p->labels, sums->items[k].label);
    uint32_t i = cs_strings_add(&known, (const char *)&label, offsetof(struct cs_label, endpoint));
    *place = (int32_t)i;
    if (table[i] != NULL) continue;
    linked[i] = label;
    otlp__link__init(&links[i]);
    links[i].trace_id = (ProtobufCBinaryData){sizeof label.trace, linked[i].trace};
    links[i].span_id = (ProtobufCBinaryData){sizeof label.span, linked[i].span};
    table[i] = &links[i];
  }
  d->message.link_table = table;
  d->message.n_link_table = known.count;
  cs_strings_free(&known);
}

int32_t cs_otlp_link(const struct cs_otlp_dictionary *d, uint32_t label) {
  return d->link_of[label];
}

// ---- Stacks ----

int32_t cs_otlp_stack(struct cs_otlp_dictionary *d, uint32_t node) {
  const struct cs_tree *tree = &d->p->tree;
  size_t depth = 0;
  for (uint32_t i = node; tree->nodes[i].parent != 0; i = tree->nodes[i].parent) {
    CS_APPEND(d->path, depth, d->path_capacity, (int32_t)d->places.of[i] + 1);
    i = cs_locations_base(&d->places, tree, i);
  }
  return (int32_t)cs_strings_add(&d->stack_pool, (const char *)d->path, depth * sizeof *d->path);
}

static void add_stacks(struct cs_otlp_dictionary *d) {
  const struct cs_strings *pool = &d->stack_pool;
  Otlp__Stack *stacks = cs_arena_take(d->arena, pool->count, sizeof *stacks);
  Otlp__Stack **table = cs_arena_take(d->arena, pool->count, sizeof *table);
  int32_t *next = cs_arena_take(d->arena, pool->used, 1);  // all stacks' locations
  for (size_t i = 0; i < pool->count; i++) {
    Otlp__Stack *stack = &stacks[i];
    otlp__stack__init(stack);
    stack->n_location_indices = pool->items[i].len / sizeof *next;
    stack->location_indices = next;
    // Its bytes in the pool need not be aligned.
    memcpy(next, pool->bytes + pool->items[i].offset, pool->items[i].len);
    next += stack->n_location_indices;
    table[i] = stack;
  }
  d->message.stack_table = table;
  d->message.n_stack_table = pool->count;
}

// ---- The whole ----

void cs_otlp_dictionary_open(struct cs_otlp_dictionary *d, const struct cs_merged *merged,
                             const uint32_t *threads, struct cs_arena *arena) {
  const struct cs_profile *p = &merged->profile;
  size_t labels = p->labels != NULL ? cs_labels_count(p->labels) : 1;
  *d = (struct cs_otlp_dictionary){.p = p, .arena = arena};
  otlp__profiles_dictionary__init(&d->message);
  (void)cs_strings_add(&d->strings, "", 0);
  (void)cs_strings_add(&d->stack_pool, "", 0);
  cs_functions_make(&d->functions, p, false);
  cs_locations_make(&d->places, p);
  open_mappings(d);
  add_functions(d);
  add_locations(d);
  open_attributes(d, labels);
  add_threads(d, threads);
  add_requests(d, merged, labels);
  add_links(d, labels);
}

// Strings come last, because they move until then.
void cs_otlp_dictionary_close(struct cs_otlp_dictionary *d) {
  add_stacks(d);
  d->texts = cs_strings_table(&d->strings);
  d->message.string_table = d->texts;
  d->message.n_string_table = d->strings.count;
  set_texts(d);
}

void cs_otlp_dictionary_free(struct cs_otlp_dictionary *d) {
  cs_functions_free(&d->functions);
  cs_locations_free(&d->places);
  cs_strings_free(&d->strings);
  cs_strings_free(&d->stack_pool);
  cs_map_free(&d->attribute_ids);
  cs_map_free(&d->text_values);
  cs_map_free(&d->mapping_ids);
  cs_map_free(&d->function_ids);
  free(d->path);
  free(d->texts);
}
