// SPDX-License-Identifier: MIT
// permanent: code that the runtime never frees. The profiling API does not check the ids that it is
// given, so it is asked about such code only. Signal-safe: yes. Reads through `world->mem`.
#pragma once

#include "codemap/codemap.h"
#include "contract/contract.h"

// Adds the permanent code in [begin, end) to `list`, as far as there is room. Must be called with
// ascending addresses.
CS_ISLAND void cs_permanent_add(const struct cs_world *world, uint64_t begin, uint64_t end,
                                struct cs_permanent *list);
