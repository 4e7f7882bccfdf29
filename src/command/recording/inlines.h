// SPDX-License-Identifier: MIT
// The two maps that the JIT makes of a method, as the recording has them: the IL map, and the map
// of the methods that were inlined into it. One thread.
#pragma once

#include "recording/recording.h"

#define CS_INLINES_NO_CALL (UINT32_MAX - 1)  // in->calls: the place of the call is not known

// The range of the method's IL map that a managed frame is in. Returns NULL if there is none.
const struct cs_wire_il_range *cs_inlines_il_range(const struct cs_recording *rec, uint64_t frame);
// Returns the key of the frame at a machine code offset of the method.
uint64_t cs_inlines_place(const struct cs_rec_inlines *in, uint32_t offset);
// Returns the ancestor of a node that was inlined into the method itself.
uint32_t cs_inlines_outermost(const struct cs_rec_inlines *in, uint32_t node);
// Fills in->calls: the places at which a method calls what was inlined into it, from its IL map.
void cs_inlines_find_calls(const struct cs_recording *rec, struct cs_rec_inlines *in);
