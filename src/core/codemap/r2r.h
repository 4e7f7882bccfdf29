// SPDX-License-Identifier: MIT
// ReadyToRun images: methods, by their RUNTIME_FUNCTION tables. Signal-safe: yes.
#pragma once

#include "codemap/range.h"

CS_ISLAND enum cs_stop cs_r2r_find(const struct cs_world *world, const struct cs_range *range,
                                   uint64_t ip, struct cs_code *code);

// An image's sorted table of functions: main bodies and funclets.
struct cs_r2r_table {
  struct cs_range range;
  uint64_t functions;
  uint32_t count;
  uint64_t entry_points;  // the map from entry points to methods, shared by a composite
};
// Returns false if there is no ReadyToRun code at `ip`, or if functions have cold parts elsewhere
// (crossgen's --hot-cold-splitting, which no shipped image has).
CS_ISLAND bool cs_r2r_table_of(const struct cs_world *world, uint64_t ip,
                               struct cs_r2r_table *table);
// cs_r2r_index_of finds the last function that begins at or before `ip`, cs_r2r_begin the address
// at which function `index` begins.
CS_ISLAND bool cs_r2r_index_of(const struct cs_world *world, const struct cs_r2r_table *table,
                               uint64_t ip, uint32_t *index);
CS_ISLAND bool cs_r2r_begin(const struct cs_world *world, const struct cs_r2r_table *table,
                            uint32_t index, uint64_t *begin);
