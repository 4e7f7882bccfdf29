// SPDX-License-Identifier: MIT
// Markers of the Firefox Profiler: an object that was allocated, an exception that was thrown, a
// wait for a lock and a pause of the runtime are kinds of their own, each with its fields. A thrown
// exception is an object that was allocated, too, and only its kind distinguishes the two.
// Invariant: a field that a marker has is one of its schema. One thread. Signal-safe: no.
#include "formats/firefox_markers.h"

#include <string.h>

#include "base/prefix.h"

enum amount { COUNT, BYTES, DURATION };

static const struct schema {
  enum cs_wire_mode mode;
  const char *name;
  bool overview;  // shown in the overview of the timeline, too
  const char *chart, *tooltip, *table;
  const char *what, *what_label;  // the field for the type; NULL: it has none
  const char *amount_of, *amount_label;
  enum amount amount;
} schemas[CS_FIREFOX_SCHEMAS] = {
    {CS_WIRE_MODE_ALLOC, "Allocation", false, "{marker.data.typeName}",
     "Allocation of {marker.data.typeName}",
     "{marker.data.typeName}, {marker.data.bytes} in {marker.data.where}", "typeName", "Type",
     "bytes", "Bytes it stands for", BYTES},
    {CS_WIRE_MODE_EXCEPTION, "Exception", true, "{marker.data.typeName}",
     "{marker.data.typeName} thrown", "{marker.data.typeName} in {marker.data.where}", "typeName",
     "Type", "count", "Exceptions that it stands for", COUNT},
    {CS_WIRE_MODE_LOCK, "Lock", true, "{marker.data.where}", "Wait for a lock",
     "{marker.data.waited} in {marker.data.where}", NULL, NULL, "waited", "Waited", DURATION},
    {CS_WIRE_MODE_HOLDERS, "Lock holder", true, "{marker.data.where}", "Holds a lock",
     "{marker.data.waited} in {marker.data.where}", "typeName", "Lock", "waited", "Others waited",
     DURATION},
    {CS_WIRE_MODE_WAIT, "Wait", true, "{marker.data.typeName}", "Wait for {marker.data.typeName}",
     "{marker.data.typeName}, {marker.data.waited} in {marker.data.where}", "typeName", "What for",
     "waited", "Waited", DURATION},
    {CS_WIRE_MODE_GC, "GC pause", true, "{marker.data.reason}", "{marker.data.reason}",
     "{marker.data.reason}, {marker.data.pause}", "reason", "Reason", "pause", "Pause", DURATION},
    // CPU mode by an event of the kernel's.
    {CS_WIRE_MODE_CPU, "Kernel event", false, "{marker.data.typeName}", "{marker.data.typeName}",
     "{marker.data.count} {marker.data.typeName} in {marker.data.where}", "typeName", "Event",
     "count", "Events that it stands for", COUNT},
};

// `schema.data` as version 47 of the format has it.
static void put_field(struct cs_json_writer *j, const char *key, const char *label,
                      const char *format) {
  cs_json_open(j, NULL, '{');
  CS_JSON_TEXTS(j, {"key", key}, {"label", label}, {"format", format});
  cs_json_bool(j, "searchable", true);
  cs_json_close(j, "}");
}

static void put_schema(struct cs_json_writer *j, const struct schema *s) {
  static const char *const formats[] = {
      [COUNT] = "integer", [BYTES] = "bytes", [DURATION] = "duration"};
  cs_json_open(j, NULL, '{');
  cs_json_text(j, "name", s->name);
  cs_json_open(j, "display", '[');
  CS_JSON_TEXTS(j, {NULL, "marker-chart"}, {NULL, "marker-table"});
  if (s->overview) cs_json_text(j, NULL, "timeline-overview");
  cs_json_close(j, "]");
  CS_JSON_TEXTS(j, {"chartLabel", s->chart}, {"tooltipLabel", s->tooltip},
                {"tableLabel", s->table});
  cs_json_open(j, "data", '[');
  if (s->what != NULL) put_field(j, s->what, s->what_label, "string");
  put_field(j, s->amount_of, s->amount_label, formats[s->amount]);
  put_field(j, "where", "Method", "string");
  put_field(j, "own", "Your code", "string");
  cs_json_close(j, "]}");
}

void cs_put_firefox_schemas(struct cs_json_writer *j) {
  cs_json_open(j, "markerSchema", '[');
  for (size_t i = 0; i < CS_FIREFOX_SCHEMAS; i++) {
    if (i > 0) cs_json_new_line(j);
    put_schema(j, &schemas[i]);
  }
  cs_json_close(j, "]");
}

const char *cs_firefox_marker_name(size_t number) {
  return schemas[number].name;
}

size_t cs_firefox_marker_schema(const struct cs_marker *marker) {
  size_t i = 0;
  while (i + 1 < CS_FIREFOX_SCHEMAS && schemas[i].mode != marker->profile->facts.mode) i++;
  return i;
}

// The lock's own methods do not tell where it was waited for.
static bool is_lock(const struct cs_profile *p, uint32_t frame) {
  static const char threading[] = "System.Threading.";
  const char *name = cs_profile_method(p, frame, NULL);
  return (p->facts.mode == CS_WIRE_MODE_LOCK || p->facts.mode == CS_WIRE_MODE_WAIT) &&
         cs_has_prefix(name, threading);
}

// Returns the innermost frame that is code of the program's, or any managed one, or 0 if there is
// none.
static uint32_t innermost(const struct cs_marker *m, bool own) {
  const struct cs_profile *p = m->profile;
  uint32_t last = 0;
  for (uint32_t n = m->leaf; p->tree.nodes[n].parent != 0; n = p->tree.nodes[n].parent) {
    uint32_t frame = p->tree.nodes[n].frame;
    enum cs_profile_kind kind = p->frames[frame].kind;
    if (kind == CS_KIND_USER) return n;
    if (own || (kind != CS_KIND_FRAMEWORK && kind != CS_KIND_DYNAMIC)) continue;
    last = n;
    if (!is_lock(p, frame)) return n;
  }
  return last;
}

static void put_where(struct cs_json_writer *j, const struct cs_marker *m, bool own,
                      const char *field) {
  uint32_t node = innermost(m, own);
  size_t len;
  if (node == 0) return;
  const char *name = cs_profile_method(m->profile, m->profile->tree.nodes[node].frame, &len);
  cs_json_bytes(j, field, name, len);
}

uint32_t cs_firefox_marker_place(const struct cs_marker *m) {
  const struct cs_node *leaf = &m->profile->tree.nodes[m->leaf];
  bool type = leaf->parent != 0 && m->profile->frames[leaf->frame].kind == CS_KIND_TYPE;
  return type ? leaf->parent : m->leaf;
}

void cs_put_firefox_marker(struct cs_json_writer *j, const struct cs_marker *m, uint32_t stack) {
  const struct schema *s = &schemas[cs_firefox_marker_schema(m)];
  const char *name = m->name;
  size_t len = m->len;
  if (len > 2 && name[0] == '[' && name[len - 1] == ']') name++, len -= 2;  // no frame here
  cs_json_open(j, NULL, '{');
  cs_json_text(j, "type", s->name);
  if (s->what != NULL) cs_json_bytes(j, s->what, name, len);
  if (s->amount == DURATION)
    cs_json_decimal(j, s->amount_of, m->weight, 6);
  else
    cs_json_uint(j, s->amount_of, m->weight);
  put_where(j, m, false, "where");
  put_where(j, m, true, "own");
  if (stack != UINT32_MAX) {
    cs_json_open(j, "cause", '{');
    cs_json_decimal(j, "time", m->begin_ns, 6);
    cs_json_uint(j, "stack", stack);
    cs_json_close(j, "}");
  }
  cs_json_close(j, "}");
}
