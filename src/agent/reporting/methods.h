// SPDX-License-Identifier: MIT
// Methods on the stack: their names, IL maps, modules, inlined methods, and what they are on the
// stack for. The agent's thread only. Not for handlers.
#pragma once

#include "reporting/functions.h"

// Gets the id of the method on the wire. Returns false if there is no room for a record.
bool cs_method_at_to_wire(const struct cs_method_at *method, uint32_t *id);
// Returns whether the method is part of the runtime's exception dispatch, whose frames are above
// those of the thrower.
bool cs_method_is_dispatch(uint32_t id);
void cs_methods_free(void);  // when the recording is over
