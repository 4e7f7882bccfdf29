// SPDX-License-Identifier: MIT
// The facts of a recording for one of its modes.
#pragma once

#include "recording/recording.h"

// The recording owns the texts.
void cs_facts_fill(struct cs_facts *facts, const struct cs_recording *rec, enum cs_wire_mode mode);
