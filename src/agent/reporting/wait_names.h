// SPDX-License-Identifier: MIT
// What a thread waits for, by the runtime's methods on its stack. The agent's thread only. Not for
// handlers.
#pragma once

#include "clr_names/names.h"

// What is waited for where neither the stack nor the event says so.
#define CS_WAIT_UNNAMED "[an unnamed wait]"

// A method has been named under this id, which is higher than all before. Returns false if there is
// no memory.
bool cs_wait_name_note(uint32_t id, const struct cs_method_name *name);
// Does the method wait? *name, NULL for the leaf: for what; valid until the next note. The stub
// that a wait calls the runtime by is part of the wait, but leaves *name as it is.
bool cs_wait_name_of(uint32_t id, const char **name);
void cs_wait_names_free(void);
