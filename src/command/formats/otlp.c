// SPDX-License-Identifier: MIT
// OTLP profiles, by protobuf-c: one for each mode, with one dictionary. A sample is a distinct
// stack of one thread; its value is the weight of all its samples. All messages live in one arena
// until the request is written. One thread. Signal-safe: no.
#include "formats/otlp.h"

#include <stdlib.h>
#include <string.h>

#include "formats/otlp_dictionary.h"
#include "formats/writers.h"
#include "profile/merge.h"
#include "profile/timeline.h"

enum { PROFILE_ID_BYTES = 16, OWN_ATTRIBUTES = 4 };

// The profile of one mode.
struct part {
  const struct cs_facts *facts;
  size_t index;  // in the merged profile
  Otlp__Profile profile;
  Otlp__ValueType type;
  uint8_t id[PROFILE_ID_BYTES];
  Otlp__Sample *samples;
  int64_t *values;      // one for each sample
  int32_t *attributes;  // the next free place for those of a labelled sample
};

struct builder {
  struct cs_arena arena;
  struct cs_merged merged;
  const struct cs_profile *p;  // the merged one: stacks of all modes are in one dictionary
  uint32_t *thread;            // per node
  struct cs_otlp_dictionary dictionary;
  Otlp__ExportProfilesServiceRequest out;
  Otlp__ResourceProfiles resource_profiles, *resource_profiles_ref;
  Otlp__ScopeProfiles scope_profiles, *scope_profiles_ref;
  Otlp__InstrumentationScope scope;
  Otlp__Resource resource;
  Otlp__KeyValue *resource_attributes;
  Otlp__AnyValue *resource_values;
};

// ---- Samples ----

static Otlp__Sample *add_sample(struct builder *b, struct part *part, uint32_t node, int32_t stack,
                                uint64_t weight) {
  size_t index = part->profile.n_samples++;
  Otlp__Sample *s = &part->samples[index];
  otlp__sample__init(s);
  s->stack_index = stack;
  part->values[index] = (int64_t)weight;
  s->values = &part->values[index];
  s->n_values = 1;
  s->n_attribute_indices = cs_otlp_thread(&b->dictionary, b->thread[node], &s->attribute_indices);
  part->profile.samples[index] = s;
  return s;
}

// Adds what the label says to what there is of the thread.
static void label_sample(struct builder *b, struct part *part, Otlp__Sample *s, uint32_t label) {
  int32_t *all = part->attributes;
  memcpy(all, s->attribute_indices, s->n_attribute_indices * sizeof *all);
  s->n_attribute_indices += cs_otlp_request(&b->dictionary, label, all + s->n_attribute_indices);
  s->attribute_indices = all;
  s->link_index = cs_otlp_link(&b->dictionary, label);
  part->attributes += s->n_attribute_indices;
}

// A stack is a sample under each Activity, and one under none.
static void add_node(struct builder *b, struct part *part, uint32_t node) {
  const struct cs_merged *m = &b->merged;
  const struct cs_label_sums *sums = &b->p->labelled;
  uint64_t samples = m->samples[node * m->count + part->index];
  uint64_t weight = m->weight[node * m->count + part->index];
  if (samples == 0) return;
  int32_t stack = cs_otlp_stack(&b->dictionary, node);
  for (size_t k = cs_label_sums_find(sums, node, CS_NO_LABEL);
       k < sums->count && sums->items[k].node == node; k++) {
    size_t at = k * m->count + part->index;
    if (m->label_samples[at] == 0) continue;
    label_sample(b, part, add_sample(b, part, node, stack, m->label_weight[at]),
                 sums->items[k].label);
    samples -= m->label_samples[at];
    weight -= m->label_weight[at];
  }
  if (samples > 0) (void)add_sample(b, part, node, stack, weight);
}

static void add_samples(struct builder *b, struct part *part) {
  const struct cs_tree *tree = &b->p->tree;
  size_t count = b->p->labelled.count;
  for (uint32_t i = 1; i < tree->count; i++) count += tree->nodes[i].samples != 0;
  part->samples = cs_arena_take(&b->arena, count, sizeof *part->samples);
  part->values = cs_arena_take(&b->arena, count, sizeof *part->values);
  part->attributes = cs_arena_take(
      &b->arena, b->p->labelled.count * (CS_OTLP_THREAD_ATTRIBUTES + CS_OTLP_REQUEST_ATTRIBUTES),
      sizeof *part->attributes);
  part->profile.samples = cs_arena_take(&b->arena, count, sizeof *part->profile.samples);
  for (uint32_t i = 1; i < tree->count; i++) add_node(b, part, i);
}

// ---- Profiles ----

// A unique number, by which a receiver recognises a profile that is sent again because the response
// was lost.
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
  const struct cs_mode *mode = cs_mode_of(f);
  Otlp__Profile *out = &part->profile;
  otlp__profile__init(out);
  otlp__value_type__init(&part->type);
  part->type.type_strindex =
      cs_otlp_word(&b->dictionary, mode->weight != NULL ? mode->weight : mode->count);
  part->type.unit_strindex = cs_otlp_word(&b->dictionary, cs_unit_name(mode->unit));
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
  struct part *parts = cs_arena_take(&b->arena, set->count, sizeof *parts);
  Otlp__Profile **table = cs_arena_take(&b->arena, set->count, sizeof *table);
  for (size_t i = 0; i < set->count; i++) {
    parts[i].facts = &set->profiles[i].facts;
    parts[i].index = i;
    add_profile(b, &parts[i]);
    table[i] = &parts[i].profile;
  }
  b->scope_profiles.profiles = table;
  b->scope_profiles.n_profiles = set->count;
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
  b->resource.attributes[i] = a;
  return a->value;
}

static void add_resource(struct builder *b, const struct cs_resource *resource,
                         const char *service) {
  size_t count = (resource != NULL ? resource->count : 0) + OWN_ATTRIBUTES;
  otlp__resource__init(&b->resource);
  b->resource_attributes = cs_arena_take(&b->arena, count, sizeof *b->resource_attributes);
  b->resource.attributes = cs_arena_take(&b->arena, count, sizeof *b->resource.attributes);
  b->resource_values = cs_arena_take(&b->arena, count, sizeof *b->resource_values);
  if (!names_service(resource))
    cs_otlp_set_text(add_resource_attribute(b, "service.name"), service);
  for (size_t i = 0; resource != NULL && i < resource->count; i++)
    cs_otlp_set_text(add_resource_attribute(b, resource->attributes[i].key),
                     resource->attributes[i].value);
  cs_otlp_set_number(add_resource_attribute(b, "process.pid"), b->p->facts.pid);
  cs_otlp_set_text(add_resource_attribute(b, "process.runtime.name"), ".NET");
  cs_otlp_set_text(add_resource_attribute(b, "process.runtime.version"), b->p->facts.runtime);
}

// ---- The whole ----

static void nest(struct builder *b) {
  static char scope_name[] = "clrsnap", scope_version[] = CLRSNAP_VERSION;
  otlp__instrumentation_scope__init(&b->scope);
  b->scope.name = scope_name;
  b->scope.version = scope_version;
  b->scope_profiles.scope = &b->scope;
  b->scope_profiles_ref = &b->scope_profiles;
  b->resource_profiles.resource = &b->resource;
  b->resource_profiles.scope_profiles = &b->scope_profiles_ref;
  b->resource_profiles.n_scope_profiles = 1;
  b->resource_profiles_ref = &b->resource_profiles;
  b->out.resource_profiles = &b->resource_profiles_ref;
  b->out.n_resource_profiles = 1;
  b->out.dictionary = &b->dictionary.message;
}

static void build(struct builder *b, const struct cs_profile_set *set,
                  const struct cs_resource *resource, const char *service) {
  cs_merge(&b->merged, set);
  b->p = &b->merged.profile;
  b->thread = cs_node_threads(&b->p->tree);
  otlp__export_profiles_service_request__init(&b->out);
  otlp__resource_profiles__init(&b->resource_profiles);
  otlp__scope_profiles__init(&b->scope_profiles);
  cs_otlp_dictionary_open(&b->dictionary, &b->merged, b->thread, &b->arena);
  add_profiles(b, set);
  cs_otlp_dictionary_close(&b->dictionary);
  add_resource(b, resource, service);
  nest(b);
}

static void clean_up(struct builder *b) {
  cs_otlp_dictionary_free(&b->dictionary);
  cs_arena_free(&b->arena);
  free(b->thread);
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
