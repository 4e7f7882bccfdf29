// SPDX-License-Identifier: MIT
// Where the workers of a starved thread pool wait: at each look that found it starved, the last sample
// of each worker that mode wall has taken. One thread.
#ifndef CS_RECORDING_POOL_WAITS_H
#define CS_RECORDING_POOL_WAITS_H

#include "recording/recording.h"

// Takes in a look. After CS_POOL_WAITS_MAX entries, looks are not taken in any more.
void cs_pool_waits_look(struct cs_recording *rec, const struct cs_wire_starved *look);
void cs_pool_waits_add(struct cs_rec_pool_waits *waits, const struct cs_rec_pool_wait *wait);
enum { CS_POOL_WAITS_MAX = 65536 };

#endif
