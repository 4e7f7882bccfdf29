// SPDX-License-Identifier: MIT
// eh: the runtime's own managed exception dispatch. Not for handlers, except cs_eh_role_of.
#pragma once

#include <stdint.h>

enum cs_eh_role {
  CS_EH_NONE,
  CS_EH_DISPATCH,       // a method of the dispatch
  CS_EH_FILTER_CALLER,  // the method of the dispatch that calls exception filters
};
// Finds out which methods are exception dispatch. Calls the CLR. Called before the first walk.
void cs_eh_init(void);
// Returns the role of the method `token` of `module`. Async-signal-safe.
enum cs_eh_role cs_eh_role_of(uint64_t module, uint32_t token);
