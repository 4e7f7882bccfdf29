// SPDX-License-Identifier: MIT
// Modules as the wire knows them, with the ids of their PDBs. The agent's thread only. Not for
// handlers.
#pragma once

#include "clr_names/names.h"

// Sends the record of the method's module, which is loaded, unless the wire has it. Returns false
// if there is no room.
bool cs_module_to_wire(const struct cs_method_name *name);
// Is `at` within the image of the method's module? Yes if that is not known.
bool cs_module_contains(const struct cs_method_name *name, uint64_t at);
void cs_modules_free(void);  // when the recording is over
