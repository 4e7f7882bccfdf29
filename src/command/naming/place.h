// SPDX-License-Identifier: MIT
// From a place in a method's machine code to its source line, by the recording's IL map of the
// method and the module's symbols. One thread.
#pragma once

#include "metadata/lines.h"
#include "recording/recording.h"

struct cs_places;
// `target` is the process whose paths the modules have.
struct cs_places *cs_places_new(const struct cs_recording *rec, const struct cs_target *target);
// The line of a managed or inlined frame (frame_key.h). Returns false if it is unknown.
bool cs_places_find(struct cs_places *places, uint64_t frame, struct cs_line *out);
// The IL offset for cs_lines_find: a prolog has its method's first line, an epilog its last.
uint32_t cs_place_il(uint32_t il);
void cs_places_report(const struct cs_places *places, struct cs_line_facts *out);
void cs_places_free(struct cs_places *places);
