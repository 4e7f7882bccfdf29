// SPDX-License-Identifier: MIT
// What markers are in the Firefox Profiler: one schema for each mode of events, which says how it
// shows their fields. One thread.
#ifndef CS_FORMATS_FIREFOX_MARKERS_H
#define CS_FORMATS_FIREFOX_MARKERS_H

#include "profile/markers.h"
#include "util/json.h"

#define CS_FIREFOX_SCHEMAS 6

// "markerSchema":[...], for the profile's `meta`.
void cs_put_firefox_schemas(struct cs_json_writer *j);
// Markers are named after their schema: the name with that number, below CS_FIREFOX_SCHEMAS.
const char *cs_firefox_marker_name(size_t number);
size_t cs_firefox_marker_schema(const struct cs_marker *marker);
// Where it happened: a node of its profile, without the type that it is about.
uint32_t cs_firefox_marker_place(const struct cs_marker *marker);
// The marker's `data`: its schema, the fields it has, and its stack, an index into the thread's
// (UINT32_MAX: it has none).
void cs_put_firefox_marker(struct cs_json_writer *j, const struct cs_marker *marker,
                           uint32_t stack);

#endif
