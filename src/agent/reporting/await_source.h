// SPDX-License-Identifier: MIT
// Where an async method whose awaiter is not in a Task has it. The agent's thread only, while the
// class is known to be alive. Not for handlers.
#pragma once

#include "clr_names/class.h"
#include "signal/awaits.h"

bool cs_await_is_pooled_box(const struct cs_class *class);
bool cs_await_is_resumer(const struct cs_class *class);  // CS_AWAIT_RESUMER
// Finds where a box has its source, and where a Delegate has its target, which a source needs.
// Returns false if the box has no source.
bool cs_await_find_source(const struct cs_class *box, struct cs_await_source *out,
                          uint32_t *target);
