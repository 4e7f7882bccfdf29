// SPDX-License-Identifier: MIT
// Where the workers of a starved thread pool wait: at each look that found the pool starved, the
// stack of each worker's last sample in wall mode. One thread.
#pragma once

#include "recording/recording.h"

// Adds what a look has found. After CS_POOL_WAITS_MAX entries, further looks are ignored.
void cs_pool_waits_look(struct cs_recording *rec, const struct cs_wire_starved *look);
void cs_pool_waits_add(struct cs_rec_pool_waits *waits, const struct cs_rec_pool_wait *wait);
enum { CS_POOL_WAITS_MAX = 65536 };
