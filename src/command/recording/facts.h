// SPDX-License-Identifier: MIT
// facts: what a recording says of itself, for one of its modes.
#ifndef CS_RECORDING_FACTS_H
#define CS_RECORDING_FACTS_H

#include "recording/recording.h"

// Texts are the recording's own.
void cs_facts_fill(struct cs_facts *facts, const struct cs_recording *rec, enum cs_wire_mode mode);

#endif
