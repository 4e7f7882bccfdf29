// SPDX-License-Identifier: MIT
// What a thread waits for, by the runtime's methods on its stack. The agent's thread only. Not for
// handlers.
#pragma once

#include "clr_names/names.h"

// What is waited for where neither the stack nor the event shows it.
#define CS_WAIT_UNNAMED "[an unnamed wait]"

// Notes that a method has been named under this id, which is higher than all before. Returns false
// if there is no memory.
bool cs_wait_name_note(uint32_t id, const struct cs_method_name *name);
// Returns whether the method is part of a wait. Sets *name, NULL for the leaf, to what is waited
// for; valid until the next note. The stub through which a wait calls the runtime is part of the
// wait, but leaves *name unchanged.
bool cs_wait_name_of(uint32_t id, const char **name);
// Returns whether a name that cs_wait_name_of has found is that of a wait; Thread.Sleep is none.
bool cs_wait_name_is_a_wait(const char *name);
void cs_wait_names_free(void);
