// SPDX-License-Identifier: MIT
// From a place in a method's machine code to its source line: by the recording's IL map of the
// method and the module's symbols. One thread.
#ifndef CS_RECORDING_PLACE_H
#define CS_RECORDING_PLACE_H

#include "metadata/lines.h"
#include "recording/recording.h"

// The range of its method's IL map that a managed frame of the recording is in. NULL: in none.
const struct cs_wire_il_range *cs_place_range(const struct cs_recording *rec, uint64_t frame);

struct cs_places;
// `target`: whose paths the modules have.
struct cs_places *cs_places_new(const struct cs_recording *rec, const struct cs_target *target);
// The line of a managed or inlined frame of the recording (recording.h). False: it is not known.
bool cs_places_find(struct cs_places *places, uint64_t frame, struct cs_line *out);
// What to ask cs_lines_find for: a prolog is its method's first line, an epilog its last.
uint32_t cs_place_il(uint32_t il);
void cs_places_tell(const struct cs_places *places, struct cs_line_facts *out);
void cs_places_free(struct cs_places *places);

#endif
