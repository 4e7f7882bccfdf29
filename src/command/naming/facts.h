// SPDX-License-Identifier: MIT
// The facts of a recording for one of its modes.
#ifndef CS_NAMING_FACTS_H
#define CS_NAMING_FACTS_H

#include "recording/recording.h"

// The recording owns the texts.
void cs_facts_fill(struct cs_facts *facts, const struct cs_recording *rec, enum cs_wire_mode mode);

#endif
