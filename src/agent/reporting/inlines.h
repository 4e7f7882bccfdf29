// SPDX-License-Identifier: MIT
// What was inlined into a method. The agent's thread only. Not for handlers.
#pragma once

#include "reporting/functions.h"

// Sends what was inlined into the method, which is alive and has the id `id`, if the runtime has
// kept that. Returns false if there is no room.
bool cs_inlines_to_wire(const struct cs_method_at *method, uint32_t id);
