// SPDX-License-Identifier: MIT
// Code heaps: jitted methods, by nibble map and code header. Signal-safe: yes.
#ifndef CS_CODEMAP_JIT_H
#define CS_CODEMAP_JIT_H

#include "codemap/range.h"

CS_ISLAND enum cs_stop cs_jit_find(const struct cs_world *world, const struct cs_range *range,
                                   uint64_t ip, struct cs_code *code);

#endif
