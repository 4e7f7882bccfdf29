// SPDX-License-Identifier: MIT
// Whole names of the types that allocations and exceptions are about: the runtime's events have the
// name of a nested type without the types that it is nested in. The agent's thread only, except
// where stated. Not for handlers.
#pragma once

#include <stdint.h>

// Returns the number (state/event_names.h) of the whole name of a class that was alive in that
// generation of code, and whose event has the name `type`. Where that is unknown, it is the number
// of the event's name.
uint32_t cs_type_name_whole(uint64_t class, uint32_t type, uint32_t generation);
// The same for events that no sample stands for: the whole name that a sample with `type` has had.
uint32_t cs_type_name_known(uint32_t type);
void cs_type_names_forget(void);  // when a module has been unloaded. Any thread
void cs_type_names_free(void);
