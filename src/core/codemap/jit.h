// SPDX-License-Identifier: MIT
// Code heaps: jitted methods, by nibble map and code header. Signal-safe: yes.
#pragma once

#include "codemap/range.h"

// Finds the start of the method or stub of a code heap that may contain `ip`. *start is 0 if there
// is none.
CS_ISLAND enum cs_stop cs_jit_start(const struct cs_world *world, const struct cs_range *range,
                                    uint64_t ip, uint64_t *start);

// Finds the RUNTIME_FUNCTION of a code heap's method that contains `ip`, or the stub.
CS_ISLAND enum cs_stop cs_jit_find(const struct cs_world *world, const struct cs_range *range,
                                   uint64_t ip, struct cs_code *code);
