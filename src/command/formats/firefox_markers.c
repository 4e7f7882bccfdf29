// SPDX-License-Identifier: MIT
// Markers of the Firefox Profiler: an object that was allocated, an exception that was thrown, a
// wait for a lock and a pause of the runtime are kinds of their own, each with its fields. A thrown
// exception is an object that was allocated, too, and only its kind tells the two apart. Invariant:
// a field that a marker has is one of its schema. One thread. Signal-safe: no.
#include "formats/firefox_markers.h"

#include <inttypes.h>
#include <string.h>

#include "util/text.h"

enum amount { COUNT, BYTES, DURATION };

// `schema.data` as version 47 of the format has it.
#define FIELD(key, label, format)                                     \
  "{\"key\":\"" key "\",\"label\":\"" label "\",\"format\":\"" format \
  "\","                                                               \
  "\"searchable\":true}"
#define WHERE FIELD("where", "Method", "string") "," FIELD("own", "Your code", "string")

static const struct schema {
  enum cs_wire_mode mode;
  const char *name, *display, *chart, *tooltip, *table, *fields;
  const char *what;       // the field for the type; NULL: it has none
  const char *amount_of;  // the field for the amount
  enum amount amount;
} schemas[CS_FIREFOX_SCHEMAS] = {
    {CS_WIRE_MODE_ALLOC, "Allocation", "\"marker-chart\",\"marker-table\"",
     "{marker.data.typeName}", "Allocation of {marker.data.typeName}",
     "{marker.data.typeName}, {marker.data.bytes} in {marker.data.where}",
     FIELD("typeName", "Type", "string") "," FIELD("bytes", "Bytes it stands for",
                                                   "bytes") "," WHERE,
     "typeName", "bytes", BYTES},
    {CS_WIRE_MODE_EXCEPTION, "Exception", "\"marker-chart\",\"marker-table\",\"timeline-overview\"",
     "{marker.data.typeName}", "{marker.data.typeName} thrown",
     "{marker.data.typeName} in {marker.data.where}",
     FIELD("typeName", "Type", "string") "," FIELD("count", "Exceptions that it stands for",
                                                   "integer") "," WHERE,
     "typeName", "count", COUNT},
    {CS_WIRE_MODE_LOCK, "Lock", "\"marker-chart\",\"marker-table\",\"timeline-overview\"",
     "{marker.data.where}", "Wait for a lock", "{marker.data.waited} in {marker.data.where}",
     FIELD("waited", "Waited", "duration") "," WHERE, NULL, "waited", DURATION},
    {CS_WIRE_MODE_WAIT, "Wait", "\"marker-chart\",\"marker-table\",\"timeline-overview\"",
     "{marker.data.typeName}", "Wait for {marker.data.typeName}",
     "{marker.data.typeName}, {marker.data.waited} in {marker.data.where}",
     FIELD("typeName", "What for", "string") "," FIELD("waited", "Waited", "duration") "," WHERE,
     "typeName", "waited", DURATION},
    {CS_WIRE_MODE_GC, "GC pause", "\"marker-chart\",\"marker-table\",\"timeline-overview\"",
     "{marker.data.reason}", "{marker.data.reason}", "{marker.data.reason}, {marker.data.pause}",
     FIELD("reason", "Reason", "string") "," FIELD("pause", "Pause", "duration") "," WHERE,
     "reason", "pause", DURATION},
    // Mode cpu by an event of the kernel's.
    {CS_WIRE_MODE_CPU, "Kernel event", "\"marker-chart\",\"marker-table\"",
     "{marker.data.typeName}", "{marker.data.typeName}",
     "{marker.data.count} {marker.data.typeName} in {marker.data.where}",
     FIELD("typeName", "Event", "string") "," FIELD("count", "Events that it stands for",
                                                    "integer") "," WHERE,
     "typeName", "count", COUNT},
};

void cs_put_firefox_schemas(FILE *out) {
  for (size_t i = 0; i < CS_FIREFOX_SCHEMAS; i++) {
    const struct schema *s = &schemas[i];
    (void)fprintf(out,
                  "%s{\"name\":\"%s\",\"display\":[%s],\"chartLabel\":\"%s\",\"tooltipLabel\":"
                  "\"%s\",\"tableLabel\":\"%s\",\"data\":[%s]}",
                  i > 0 ? ",\n" : "", s->name, s->display, s->chart, s->tooltip, s->table,
                  s->fields);
  }
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
         strncmp(name, threading, sizeof threading - 1) == 0;
}

// The innermost frame that is code of the program's, or any managed one; 0: there is none.
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

static void put_where(const struct cs_marker *m, bool own, const char *field, FILE *out) {
  uint32_t node = innermost(m, own);
  size_t len;
  if (node == 0) return;
  const char *name = cs_profile_method(m->profile, m->profile->tree.nodes[node].frame, &len);
  (void)fprintf(out, ",\"%s\":", field);
  cs_put_json(out, name, len);
}

uint32_t cs_firefox_marker_place(const struct cs_marker *m) {
  const struct cs_node *leaf = &m->profile->tree.nodes[m->leaf];
  bool type = leaf->parent != 0 && m->profile->frames[leaf->frame].kind == CS_KIND_TYPE;
  return type ? leaf->parent : m->leaf;
}

static void put_ms(FILE *out, uint64_t ns) {
  (void)fprintf(out, "%" PRIu64 ".%06u", ns / 1000000, (unsigned)(ns % 1000000));
}

void cs_put_firefox_marker(const struct cs_marker *m, uint32_t stack, FILE *out) {
  const struct schema *s = &schemas[cs_firefox_marker_schema(m)];
  const char *name = m->name;
  size_t len = m->len;
  if (len > 2 && name[0] == '[' && name[len - 1] == ']') name++, len -= 2;  // no frame here
  (void)fprintf(out, "{\"type\":\"%s\"", s->name);
  if (s->what != NULL) {
    (void)fprintf(out, ",\"%s\":", s->what);
    cs_put_json(out, name, len);
  }
  if (s->amount != DURATION) (void)fprintf(out, ",\"%s\":%" PRIu64, s->amount_of, m->weight);
  if (s->amount == DURATION) {
    (void)fprintf(out, ",\"%s\":", s->amount_of);
    put_ms(out, m->weight);
  }
  put_where(m, false, "where", out);
  put_where(m, true, "own", out);
  if (stack != UINT32_MAX) {
    (void)fputs(",\"cause\":{\"time\":", out);
    put_ms(out, m->begin_ns);
    (void)fprintf(out, ",\"stack\":%" PRIu32 "}", stack);
  }
  (void)putc('}', out);
}
