// SPDX-License-Identifier: MIT
// Where the workers of a starved thread pool wait: at each scan that found the pool starved, the
// stack of each worker's last sample in wall mode. One thread.
#pragma once

#include "recording/recording.h"

// Adds what a scan has found. After CS_POOL_WAITS_MAX entries, further scans are ignored.
void cs_pool_waits_add_scan(struct cs_recording *rec, const struct cs_wire_starved *scan);
void cs_pool_waits_add(struct cs_rec_pool_waits *waits, const struct cs_rec_pool_wait *wait);
enum { CS_POOL_WAITS_MAX = 65536 };
