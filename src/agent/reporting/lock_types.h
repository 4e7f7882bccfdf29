// SPDX-License-Identifier: MIT
// The types of objects whose locks are waited for. The agent's thread only, except where stated.
// Not for handlers.
#pragma once

#include <stdint.h>

// Finds the layout of System.Threading.Lock for events/lock_waits.h, if that wants it.
void cs_lock_types_learn(void);
// Returns the name of a class that was alive in that generation of code, or NULL if the name is
// unknown.
const char *cs_lock_type_name(uint64_t class, uint32_t generation);
void cs_lock_types_forget(void);  // when a module has been unloaded. Any thread
void cs_lock_types_free(void);
