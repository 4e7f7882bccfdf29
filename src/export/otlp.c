// SPDX-License-Identifier: MIT
// OTLP profiles, by protobuf-c: one for each mode, with one dictionary. A sample is a distinct
// stack of one thread, its value what its samples weigh together. All that repeats is in the
// dictionary's tables. Invariant: entry 0 of every table is the zero value and stands for none, so
// what is ours begins at 1. One thread. Signal-safe: no.
#include "export/otlp.h"

#include <stdlib.h>
#include <string.h>

#include "export/functions.h"
#include "export/locations.h"
#include "export/merge.h"
#include "export/text.h"
#include "export/timeline.h"
#include "otlp.pb-c.h"

enum { PROFILE_ID_BYTES = 16, THREAD_ATTRIBUTES = 2, OWN_ATTRIBUTES = 4 };

// All messages of the request, in few arrays. What is repeated wants arrays of pointers.
// The profile of one mode.
struct part {
  const struct cs_facts *facts;
  size_t index;  // in the merged profile
  Otlp__Profile profile;
  Otlp__ValueType type;
  uint8_t id[PROFILE_ID_BYTES];
  Otlp__Sample *samples, **sample_refs;
  int64_t *values;  // one for each sample
};

struct builder {
  struct cs_merged merged;
  const struct cs_profile *p;  // the merged one: stacks of all modes are in one dictionary
  struct part *parts;
  struct cs_functions functions;
  struct cs_locations places;
  struct cs_strings strings;
  uint32_t *thread;  // per node
  Otlp__ExportProfilesServiceRequest out;
  Otlp__ProfilesDictionary dictionary;
  Otlp__ResourceProfiles resource_profiles, *resource_profiles_ref;
  Otlp__ScopeProfiles scope_profiles, *scope_profiles_ref;
  Otlp__InstrumentationScope scope;
  Otlp__Resource resource;
  Otlp__KeyValue *resource_attributes, **resource_attribute_refs;
  Otlp__AnyValue *resource_values;
  Otlp__Profile **profile_refs;
  Otlp__Mapping *mappings, **mapping_refs;
  struct cs_map mapping_ids;  // module's string id -> place in the table
  Otlp__Location *locations, **location_refs;
  Otlp__Line *lines, **line_refs;
  Otlp__Function *function_messages, **function_refs;
  struct cs_map function_ids;  // name and file -> place in the table
  int32_t *function_of;        // of each of `functions`: its place in the table
  struct cs_label *labels;     // what the links say
  Otlp__Link *links, **link_refs;
  int32_t *link_of;  // of each label: its place in the table; 0: it is not needed
  Otlp__Stack *stacks, **stack_refs;
  Otlp__KeyValueAndUnit *attributes, **attribute_refs;
  Otlp__AnyValue *attribute_values;
  struct cs_map attribute_ids;   // index by key and value
  int32_t name_key;              // of the attribute that is a thread's name
  int32_t *thread_attributes;    // two for each thread: its name (0: it has none) and its number
  struct cs_strings stack_pool;  // stacks as their locations' indices: a stack's id is its place
  int32_t *path;                 // of the stack at hand
  size_t path_capacity;
  int32_t *indices;  // of all stacks' locations
  char **texts;
};

static int32_t text_id(struct builder *b, const char *data, size_t len) {
  return (int32_t)cs_strings_add_plain(&b->strings, data, len);
}

static int32_t word(struct builder *b, const char *text) {
  return text_id(b, text, strlen(text));
}

// ---- The dictionary ----

static int32_t mapping_of(struct builder *b, uint32_t frame) {
  bool added;
  Otlp__ProfilesDictionary *d = &b->dictionary;
  size_t len;
  const char *module = cs_profile_module(b->p, frame, &len);
  if (len == 0) return 0;
  uint32_t i =
      cs_map_put(&b->mapping_ids, b->p->frames[frame].module, (uint32_t)d->n_mapping_table, &added);
  if (added) {
    otlp__mapping__init(&b->mappings[i]);
    b->mappings[i].filename_strindex = text_id(b, module, len);
    b->mapping_refs[d->n_mapping_table++] = &b->mappings[i];
  }
  return (int32_t)i;
}

// Of the same name in two modules there is one: the module is the location's.
static int32_t add_function(struct builder *b, uint32_t frame) {
  Otlp__ProfilesDictionary *d = &b->dictionary;
  size_t len;
  bool added;
  const char *name = cs_profile_method(b->p, frame, &len);
  int32_t name_id = text_id(b, name, len);
  const char *file = cs_profile_file(b->p, frame, &len);
  int32_t file_id = file != NULL ? text_id(b, file, len) : 0;
  uint32_t i = cs_map_put(&b->function_ids, (uint64_t)name_id << 32 | (uint32_t)file_id,
                          (uint32_t)d->n_function_table, &added);
  if (!added) return (int32_t)i;
  Otlp__Function *f = &b->function_messages[i];
  otlp__function__init(f);
  f->name_strindex = name_id;
  f->filename_strindex = file_id;
  b->function_refs[d->n_function_table++] = f;
  return (int32_t)i;
}

static void add_functions(struct builder *b) {
  otlp__function__init(&b->function_messages[0]);
  b->function_refs[0] = &b->function_messages[0];
  b->dictionary.n_function_table = 1;
  for (uint32_t i = 0; i < b->functions.count; i++)
    b->function_of[i] = add_function(b, b->functions.frame[i]);
  b->dictionary.function_table = b->function_refs;
}

static void add_locations(struct builder *b) {
  Otlp__ProfilesDictionary *d = &b->dictionary;
  otlp__location__init(&b->locations[0]);
  otlp__mapping__init(&b->mappings[0]);
  b->location_refs[0] = &b->locations[0];
  b->mapping_refs[0] = &b->mappings[0];
  d->n_mapping_table = 1;
  const struct cs_locations *places = &b->places;
  Otlp__Line **next = b->line_refs;
  for (uint32_t i = 0; i < b->p->frame_count; i++) {
    Otlp__Line *line = &b->lines[i];
    otlp__line__init(line);
    line->function_index = b->function_of[b->functions.of[i]];
    line->line = b->p->frames[i].line;
  }
  for (uint32_t i = 0; i < places->count; i++) {
    Otlp__Location *l = &b->locations[i + 1];
    otlp__location__init(l);
    l->lines = next;
    for (uint32_t at = i; at != CS_NO_LOCATION; at = places->items[at].outer) {
      l->lines[l->n_lines++] = &b->lines[places->items[at].frame];
      l->mapping_index = mapping_of(b, places->items[at].frame);  // at last that of the code
    }
    next += l->n_lines;
    b->location_refs[i + 1] = l;
  }
  d->location_table = b->location_refs;
  d->n_location_table = places->count + 1;
  d->mapping_table = b->mapping_refs;
}

static void set_text(Otlp__AnyValue *value, const char *text) {
  otlp__any_value__init(value);
  value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
  value->string_value = (char *)(uintptr_t)text;
}

static void set_number(Otlp__AnyValue *value, int64_t number) {
  otlp__any_value__init(value);
  value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
  value->int_value = number;
}

// The entry of the table of attributes that says this: the pool's threads have one name, and a tid
// is used again.
static int32_t attribute(struct builder *b, int32_t key, uint32_t number) {
  bool added;
  uint32_t i = cs_map_put(&b->attribute_ids, (uint64_t)(uint32_t)key << 32 | number,
                          (uint32_t)b->dictionary.n_attribute_table, &added);
  if (!added) return (int32_t)i;
  Otlp__KeyValueAndUnit *a = &b->attributes[b->dictionary.n_attribute_table++];
  otlp__key_value_and_unit__init(a);
  a->key_strindex = key;
  a->value = &b->attribute_values[i];
  set_number(a->value, number);
  b->attribute_refs[i] = a;
  return (int32_t)i;
}

// Of the threads that have samples only: a program that makes many has most of them behind it.
static void add_thread(struct builder *b, size_t thread, const int32_t keys[THREAD_ATTRIBUTES]) {
  const struct cs_profile_thread *t = &b->p->threads[thread];
  int32_t *mine = &b->thread_attributes[THREAD_ATTRIBUTES * thread];
  size_t len;
  const char *name = cs_strings_get(&b->p->strings, t->name, &len);
  if (mine[1] != 0) return;
  // A text is in the pool of strings, which moves: its number until all of them are there.
  if (len > 0) mine[0] = attribute(b, keys[0], (uint32_t)text_id(b, name, len));
  mine[1] = attribute(b, keys[1], t->tid);
}

static void add_threads(struct builder *b) {
  const int32_t keys[THREAD_ATTRIBUTES] = {word(b, "thread.name"), word(b, "thread.id")};
  b->name_key = keys[0];
  otlp__key_value_and_unit__init(&b->attributes[0]);
  b->attribute_refs[0] = &b->attributes[0];
  b->dictionary.n_attribute_table = 1;
  for (uint32_t i = 1; i < b->p->tree.count; i++)
    if (b->p->tree.nodes[i].samples != 0) add_thread(b, b->thread[i], keys);
  b->dictionary.attribute_table = b->attribute_refs;
}

static void name_threads(struct builder *b) {
  for (size_t i = 1; i < b->dictionary.n_attribute_table; i++) {
    Otlp__AnyValue *value = &b->attribute_values[i];
    if (b->attributes[i].key_strindex == b->name_key) set_text(value, b->texts[value->int_value]);
  }
}

// Last, because until then the strings move.
static void add_strings(struct builder *b) {
  b->texts = cs_strings_table(&b->strings);
  b->dictionary.string_table = b->texts;
  b->dictionary.n_string_table = b->strings.count;
  name_threads(b);
}

// ---- Samples ----

// One stack for all threads that have it.
static int32_t add_stack(struct builder *b, uint32_t node) {
  const struct cs_tree *tree = &b->p->tree;
  size_t depth = 0;
  for (uint32_t i = node; tree->nodes[i].parent != 0; i = tree->nodes[i].parent) {
    b->path = cs_grow(b->path, depth, &b->path_capacity, sizeof *b->path);
    b->path[depth++] = (int32_t)b->places.of[i] + 1;
    i = cs_locations_base(&b->places, tree, i);
  }
  return (int32_t)cs_strings_add(&b->stack_pool, (const char *)b->path, depth * sizeof *b->path);
}

// Of the Activities that samples were taken under; entry 0 is none.
static void add_links(struct builder *b) {
  const struct cs_label_sums *sums = &b->p->labelled;
  size_t most = 1 + sums->count;
  b->labels = cs_allocate(most * sizeof *b->labels);
  b->links = cs_allocate(most * sizeof *b->links);
  b->link_refs = cs_allocate(most * sizeof *b->link_refs);
  b->link_of =
      cs_allocate((b->p->labels != NULL ? cs_labels_count(b->p->labels) : 1) * sizeof *b->link_of);
  otlp__link__init(&b->links[0]);
  b->link_refs[0] = &b->links[0];
  size_t count = 1;
  for (size_t k = 0; k < sums->count; k++) {
    int32_t *place = &b->link_of[sums->items[k].label];
    if (*place != 0) continue;
    struct cs_label *label = &b->labels[count];
    Otlp__Link *link = &b->links[count];
    *label = cs_labels_get(b->p->labels, sums->items[k].label);
    otlp__link__init(link);
    link->trace_id = (ProtobufCBinaryData){sizeof label->trace, label->trace};
    link->span_id = (ProtobufCBinaryData){sizeof label->span, label->span};
    b->link_refs[count] = link;
    *place = (int32_t)count++;
  }
  b->dictionary.link_table = b->link_refs;
  b->dictionary.n_link_table = count;
}

static void add_sample(struct builder *b, struct part *part, uint32_t node, int32_t stack,
                       uint64_t weight, int32_t link) {
  size_t index = part->profile.n_samples++;
  Otlp__Sample *s = &part->samples[index];
  otlp__sample__init(s);
  s->stack_index = stack;
  s->link_index = link;
  part->values[index] = (int64_t)weight;
  s->values = &part->values[index];
  s->n_values = 1;
  int32_t *attributes = &b->thread_attributes[THREAD_ATTRIBUTES * b->thread[node]];
  bool named = attributes[0] != 0;
  s->attribute_indices = named ? attributes : attributes + 1;
  s->n_attribute_indices = named ? 2 : 1;
  part->sample_refs[index] = s;
}

// A stack is a sample under each Activity, and one under none.
static void add_node(struct builder *b, struct part *part, uint32_t node) {
  const struct cs_merged *m = &b->merged;
  const struct cs_label_sums *sums = &b->p->labelled;
  uint64_t samples = m->samples[node * m->count + part->index];
  uint64_t weight = m->weight[node * m->count + part->index];
  if (samples == 0) return;
  int32_t stack = add_stack(b, node);
  for (size_t k = cs_label_sums_find(sums, node, CS_NO_LABEL);
       k < sums->count && sums->items[k].node == node; k++) {
    size_t at = k * m->count + part->index;
    if (m->label_samples[at] == 0) continue;
    add_sample(b, part, node, stack, m->label_weight[at], b->link_of[sums->items[k].label]);
    samples -= m->label_samples[at];
    weight -= m->label_weight[at];
  }
  if (samples > 0) add_sample(b, part, node, stack, weight, 0);
}

static void add_stacks(struct builder *b) {
  const struct cs_strings *pool = &b->stack_pool;
  size_t indices = 0;
  b->stacks = cs_allocate(pool->count * sizeof *b->stacks);
  b->stack_refs = cs_allocate(pool->count * sizeof *b->stack_refs);
  b->indices = cs_allocate(pool->used);
  for (size_t i = 0; i < pool->count; i++) {
    Otlp__Stack *stack = &b->stacks[i];
    otlp__stack__init(stack);
    stack->n_location_indices = pool->items[i].len / sizeof *b->indices;
    stack->location_indices = b->indices + indices;
    // Its place in the pool of bytes need not be aligned.
    memcpy(stack->location_indices, pool->bytes + pool->items[i].offset, pool->items[i].len);
    indices += stack->n_location_indices;
    b->stack_refs[i] = stack;
  }
  b->dictionary.stack_table = b->stack_refs;
  b->dictionary.n_stack_table = pool->count;
}

static void add_samples(struct builder *b, struct part *part) {
  const struct cs_tree *tree = &b->p->tree;
  size_t count = b->p->labelled.count;
  for (uint32_t i = 1; i < tree->count; i++) count += tree->nodes[i].samples != 0;
  part->samples = cs_allocate(count * sizeof *part->samples);
  part->sample_refs = cs_allocate(count * sizeof *part->sample_refs);
  part->values = cs_allocate(count * sizeof *part->values);
  for (uint32_t i = 1; i < tree->count; i++) add_node(b, part, i);
  part->profile.samples = part->sample_refs;
}

// A number that no other profile has, so that a receiver which gets one twice, because the answer
// to the first request was lost, can tell.
static void add_profile_id(struct part *part) {
  const struct cs_facts *f = part->facts;
  uint64_t seed[2] = {f->start_ns ^ f->duration_ns << 20,
                      (uint64_t)f->pid << 32 ^ (uint64_t)f->mode << 56 ^ f->samples};
  memcpy(part->id, seed, sizeof part->id);
  part->id[0] |= 1;  // all zero is none
  part->profile.profile_id = (ProtobufCBinaryData){sizeof part->id, part->id};
}

static void add_profile(struct builder *b, struct part *part) {
  const struct cs_facts *f = part->facts;
  const struct cs_mode *mode = cs_mode(f->mode);
  Otlp__Profile *out = &part->profile;
  otlp__profile__init(out);
  otlp__value_type__init(&part->type);
  part->type.type_strindex = word(b, mode->weight != NULL ? mode->weight : mode->count);
  part->type.unit_strindex = word(b, cs_unit_name(mode->unit));
  out->sample_type = &part->type;
  if (mode->timed) {
    out->period_type = &part->type;
    out->period = f->hz > 0 ? 1000000000 / f->hz : 0;
  }
  out->time_unix_nano = f->start_ns;
  out->duration_nano = f->duration_ns;
  add_profile_id(part);
  add_samples(b, part);
}

static void add_profiles(struct builder *b, const struct cs_profile_set *set) {
  (void)cs_strings_add(&b->stack_pool, "", 0);
  b->parts = cs_allocate(set->count * sizeof *b->parts);
  b->profile_refs = cs_allocate(set->count * sizeof *b->profile_refs);
  for (size_t i = 0; i < set->count; i++) {
    b->parts[i].facts = &set->profiles[i].facts;
    b->parts[i].index = i;
    add_profile(b, &b->parts[i]);
    b->profile_refs[i] = &b->parts[i].profile;
  }
  add_stacks(b);
}

// ---- The resource ----

static bool names_service(const struct cs_resource *resource) {
  for (size_t i = 0; resource != NULL && i < resource->count; i++)
    if (strcmp(resource->attributes[i].key, "service.name") == 0) return true;
  return false;
}

static Otlp__AnyValue *add_resource_attribute(struct builder *b, const char *key) {
  size_t i = b->resource.n_attributes++;
  Otlp__KeyValue *a = &b->resource_attributes[i];
  otlp__key_value__init(a);
  a->key = (char *)(uintptr_t)key;
  a->value = &b->resource_values[i];
  b->resource_attribute_refs[i] = a;
  return a->value;
}

static void add_resource(struct builder *b, const struct cs_resource *resource,
                         const char *service) {
  size_t count = (resource != NULL ? resource->count : 0) + OWN_ATTRIBUTES;
  otlp__resource__init(&b->resource);
  b->resource_attributes = cs_allocate(count * sizeof *b->resource_attributes);
  b->resource_attribute_refs = cs_allocate(count * sizeof *b->resource_attribute_refs);
  b->resource_values = cs_allocate(count * sizeof *b->resource_values);
  if (!names_service(resource)) set_text(add_resource_attribute(b, "service.name"), service);
  for (size_t i = 0; resource != NULL && i < resource->count; i++)
    set_text(add_resource_attribute(b, resource->attributes[i].key), resource->attributes[i].value);
  set_number(add_resource_attribute(b, "process.pid"), b->p->facts.pid);
  set_text(add_resource_attribute(b, "process.runtime.name"), ".NET");
  set_text(add_resource_attribute(b, "process.runtime.version"), b->p->facts.runtime);
  b->resource.attributes = b->resource_attribute_refs;
}

// ---- The whole ----

static void nest(struct builder *b) {
  static char scope_name[] = "clrsnap", scope_version[] = CLRSNAP_VERSION;
  otlp__instrumentation_scope__init(&b->scope);
  b->scope.name = scope_name;
  b->scope.version = scope_version;
  b->scope_profiles.scope = &b->scope;
  b->scope_profiles.profiles = b->profile_refs;
  b->scope_profiles.n_profiles = b->merged.count;
  b->scope_profiles_ref = &b->scope_profiles;
  b->resource_profiles.resource = &b->resource;
  b->resource_profiles.scope_profiles = &b->scope_profiles_ref;
  b->resource_profiles.n_scope_profiles = 1;
  b->resource_profiles_ref = &b->resource_profiles;
  b->out.resource_profiles = &b->resource_profiles_ref;
  b->out.n_resource_profiles = 1;
  b->out.dictionary = &b->dictionary;
}

static void allocate(struct builder *b) {
  size_t frames = b->p->frame_count + 1, attributes = THREAD_ATTRIBUTES * b->p->thread_count;
  b->mappings = cs_allocate(frames * sizeof *b->mappings);
  b->mapping_refs = cs_allocate(frames * sizeof *b->mapping_refs);
  b->locations = cs_allocate((b->places.count + 1) * sizeof *b->locations);
  b->location_refs = cs_allocate((b->places.count + 1) * sizeof *b->location_refs);
  b->lines = cs_allocate(frames * sizeof *b->lines);
  b->line_refs = cs_allocate(b->places.lines * sizeof *b->line_refs);
  b->function_messages = cs_allocate(frames * sizeof *b->function_messages);
  b->function_refs = cs_allocate(frames * sizeof *b->function_refs);
  b->function_of = cs_allocate(frames * sizeof *b->function_of);
  b->attributes = cs_allocate((attributes + 1) * sizeof *b->attributes);
  b->attribute_refs = cs_allocate((attributes + 1) * sizeof *b->attribute_refs);
  b->attribute_values = cs_allocate((attributes + 1) * sizeof *b->attribute_values);
  b->thread_attributes = cs_allocate((attributes + 1) * sizeof *b->thread_attributes);
}

static void build(struct builder *b, const struct cs_profile_set *set,
                  const struct cs_resource *resource, const char *service) {
  cs_merge(&b->merged, set);
  b->p = &b->merged.profile;
  otlp__export_profiles_service_request__init(&b->out);
  otlp__profiles_dictionary__init(&b->dictionary);
  otlp__resource_profiles__init(&b->resource_profiles);
  otlp__scope_profiles__init(&b->scope_profiles);
  (void)cs_strings_add(&b->strings, "", 0);
  cs_functions_make(&b->functions, b->p, false);
  cs_locations_make(&b->places, b->p);
  b->thread = cs_node_threads(&b->p->tree);
  allocate(b);
  add_functions(b);
  add_locations(b);
  add_threads(b);
  add_links(b);
  add_profiles(b, set);
  add_resource(b, resource, service);
  add_strings(b);
  nest(b);
}

static void clean_up(struct builder *b) {
  for (size_t i = 0; i < b->merged.count; i++) {
    free(b->parts[i].samples);
    free(b->parts[i].sample_refs);
    free(b->parts[i].values);
  }
  void *const all[] = {b->thread,
                       b->resource_attributes,
                       b->resource_attribute_refs,
                       b->resource_values,
                       b->mappings,
                       b->mapping_refs,
                       b->locations,
                       b->location_refs,
                       b->lines,
                       b->line_refs,
                       b->function_messages,
                       b->function_refs,
                       b->function_of,
                       b->path,
                       b->stacks,
                       b->stack_refs,
                       b->attributes,
                       b->attribute_refs,
                       b->attribute_values,
                       b->thread_attributes,
                       b->indices,
                       b->parts,
                       b->profile_refs,
                       b->labels,
                       b->links,
                       b->link_refs,
                       b->link_of,
                       b->texts};
  for (size_t i = 0; i < CS_COUNT(all); i++) free(all[i]);
  cs_functions_free(&b->functions);
  cs_locations_free(&b->places);
  cs_strings_free(&b->strings);
  cs_strings_free(&b->stack_pool);
  cs_map_free(&b->attribute_ids);
  cs_map_free(&b->mapping_ids);
  cs_map_free(&b->function_ids);
  cs_merged_free(&b->merged);
}

static bool write_set(const struct cs_profile_set *set, const struct cs_resource *resource,
                      FILE *out) {
  struct builder b = {.p = NULL};
  char service[256];
  cs_service_name(set->profiles[0].facts.program, service, sizeof service);
  build(&b, set, resource, service);
  size_t size = otlp__export_profiles_service_request__get_packed_size(&b.out);
  uint8_t *packed = cs_allocate(size);
  (void)otlp__export_profiles_service_request__pack(&b.out, packed);
  bool written = fwrite(packed, 1, size, out) == size && fflush(out) == 0;
  free(packed);
  clean_up(&b);
  return written;
}

bool cs_write_otlp_request(const struct cs_profile *p, const struct cs_resource *resource,
                           FILE *out) {
  return write_set(&(struct cs_profile_set){p, 1}, resource, out);
}

bool cs_write_otlp(const struct cs_profile_set *set, FILE *out) {
  return write_set(set, NULL, out);
}

int64_t cs_otlp_rejected(const void *response, size_t size, char *message, size_t cap) {
  message[0] = '\0';
  Otlp__ExportProfilesServiceResponse *r =
      otlp__export_profiles_service_response__unpack(NULL, size, response);
  if (r == NULL) return 0;
  int64_t rejected = 0;
  if (r->partial_success != NULL) {
    rejected = r->partial_success->rejected_profiles;
    (void)snprintf(message, cap, "%s", r->partial_success->error_message);
  }
  otlp__export_profiles_service_response__free_unpacked(r, NULL);
  return rejected;
}
