// SPDX-License-Identifier: MIT
// Markers of the Firefox Profiler. Each mode of events has a schema, which says how their fields
// are shown. One thread.
#pragma once

#include "profile/markers.h"
#include "util/json.h"

#define CS_FIREFOX_SCHEMAS 7

// "markerSchema":[...], for the profile's `meta`.
void cs_put_firefox_schemas(struct cs_json_writer *j);
// Returns the name of a schema, which is its markers' name too.
const char *cs_firefox_marker_name(size_t number);
size_t cs_firefox_marker_schema(const struct cs_marker *marker);
// Returns the node where the event happened: its leaf without the frame of its type.
uint32_t cs_firefox_marker_place(const struct cs_marker *marker);
// The marker's `data`: its schema, its fields and its stack, an index into the thread's stacks
// (UINT32_MAX: none).
void cs_put_firefox_marker(struct cs_json_writer *j, const struct cs_marker *marker,
                           uint32_t stack);
