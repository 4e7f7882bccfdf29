// SPDX-License-Identifier: MIT
// ReadyToRun images: methods by their RUNTIME_FUNCTION tables. Signal-safe: yes.
#ifndef CS_R2R_H
#define CS_R2R_H

#include "codemap/range.h"

CS_ISLAND enum cs_stop cs_r2r_find(const struct cs_world *world, const struct cs_range *range,
                                   uint64_t ip, struct cs_code *code);

#endif
