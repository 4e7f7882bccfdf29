// SPDX-License-Identifier: MIT
// Endpoints. A request delegate is a dynamic method, "lambda_method6", whose name says nothing, but
// it serves one endpoint, which the labels of its samples have. Invariant: a delegate that samples
// of two endpoints share has none. One thread. Signal-safe: no.
#include "naming/endpoints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefix.h"

#define SHARED UINT32_MAX

const char **cs_endpoints_by_label(const struct cs_recording *rec) {
  uint32_t count = cs_labels_count(&rec->labels);
  const char **names = cs_allocate(count * sizeof *names);
  for (uint32_t i = 0; i < count; i++) {
    struct cs_label label = cs_labels_get(&rec->labels, i);
    names[i] = cs_recording_endpoint(rec, &label);
  }
  return names;
}

uint16_t *cs_statuses_by_label(const struct cs_recording *rec) {
  uint32_t count = cs_labels_count(&rec->labels);
  uint16_t *statuses = cs_allocate(count * sizeof *statuses);
  for (uint32_t i = 0; i < count; i++) {
    struct cs_label label = cs_labels_get(&rec->labels, i);
    statuses[i] = (uint16_t)cs_recording_status(rec, &label);
  }
  return statuses;
}

char *cs_endpoints_list(const struct cs_recording *rec) {
  enum { MOST_BYTES = 1000 };
  struct cs_strings seen = {0};
  char *list = cs_allocate(MOST_BYTES);
  size_t used = 0;
  for (uint32_t i = 1; i < cs_labels_count(&rec->labels); i++) {
    struct cs_label label = cs_labels_get(&rec->labels, i);
    const char *name = cs_recording_endpoint(rec, &label);
    size_t before = seen.count;
    if (name[0] != '\0') (void)cs_strings_add(&seen, name, strlen(name));
    if (seen.count == before || used + strlen(name) + 8 > MOST_BYTES) continue;
    used += (size_t)snprintf(list + used, MOST_BYTES - used, "%s%s", used > 0 ? ", " : "", name);
  }
  cs_strings_free(&seen);
  return list;
}

// Returns whether it is a delegate that RequestDelegateFactory has compiled. The signature
// distinguishes it from other compiled expressions.
static bool is_delegate(const struct cs_recording *rec, const struct cs_rec_function *f) {
  static const char parameters[] = "(Closure, object, HttpContext";
  const char *signature = cs_recording_get(rec, f->text[CS_FN_SIGNATURE]);
  return f->kind == CS_WIRE_FN_DYNAMIC && cs_has_prefix(signature, parameters);
}

// Returns the index of a node's delegate, plus one, or 0 if it is none.
static uint32_t delegate_at(const struct cs_recording *rec, const struct cs_node *node) {
  uint32_t i;
  if (node->parent == 0) return 0;  // a thread
  uint64_t frame = rec->frames[node->frame];
  if (cs_key_kind(frame) != CS_KEY_MANAGED ||
      !cs_map_get(&rec->function_ids, cs_wire_frame_function(frame), &i))
    return 0;
  return is_delegate(rec, &rec->functions[i]) ? i + 1 : 0;
}

// By node: the delegate that is nearest to it. A parent's number is lower than its children's.
static uint32_t *delegates_by_node(const struct cs_recording *rec) {
  const struct cs_tree *tree = &rec->tree;
  uint32_t *delegates = cs_allocate(tree->count * sizeof *delegates);
  for (uint32_t n = 1; n < tree->count; n++) {
    uint32_t own = delegate_at(rec, &tree->nodes[n]);
    delegates[n] = own != 0 ? own : delegates[tree->nodes[n].parent];
  }
  return delegates;
}

uint32_t *cs_endpoints_of_functions(const struct cs_recording *rec) {
  if (rec->labelled.count == 0) return NULL;
  uint32_t *endpoints = cs_allocate(rec->function_count * sizeof *endpoints);
  uint32_t *delegates = delegates_by_node(rec);
  for (size_t i = 0; i < rec->labelled.count; i++) {
    const struct cs_label_sum *sum = &rec->labelled.items[i];
    uint32_t delegate = delegates[sum->node], endpoint;
    struct cs_label label = cs_labels_get(&rec->labels, sum->label);
    if (delegate == 0 || !cs_map_get(&rec->function_ids, cs_label_endpoint(&label), &endpoint))
      continue;
    uint32_t *known = &endpoints[delegate - 1];
    *known = *known == 0 || *known == endpoint + 1 ? endpoint + 1 : SHARED;
  }
  for (size_t i = 0; i < rec->function_count; i++)
    if (endpoints[i] == SHARED) endpoints[i] = 0;
  free(delegates);
  return endpoints;
}
