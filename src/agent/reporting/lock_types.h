// SPDX-License-Identifier: MIT
// The types of objects whose locks are waited for. The agent's thread only, except where stated. Not
// for handlers.
#pragma once

#include <stdint.h>

// Finds System.Threading.Lock for events/lock_waits.h, if that is wanted.
void cs_lock_types_learn(void);
// The name of a class that was alive in that generation of code; NULL: unknown.
const char *cs_lock_type_name(uint64_t class, uint32_t generation);
void cs_lock_types_forget(void);  // any thread: a module has been unloaded
void cs_lock_types_free(void);
