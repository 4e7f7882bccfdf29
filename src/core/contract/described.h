// SPDX-License-Identifier: MIT
// clrsnap's own descriptions of runtimes that do not describe their code map, in the form of a data
// contract descriptor. Private to the component. Not for handlers.
#pragma once

#include "contract/contract.h"

// The table that the runtime exports for its debugger (g_dacTable) is the description's table of
// pointers: addresses of variables, then of the classes' tables of virtual functions.
enum { CS_DEBUG_TABLE_ENTRIES = 160 };

struct cs_description {
  const char *json;
  size_t bytes;
};
// Returns NULL if this major version describes itself, or is not known.
const struct cs_description *cs_described(unsigned major);
