// SPDX-License-Identifier: MIT
// The runtime's events of allocations, locks, waits, exceptions and collections: modes alloc, lock,
// wait, exception and gc. Not for handlers.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// The callback: an event of the calling thread.
void cs_events_take(uint32_t id, const uint8_t *data, size_t size);
// The callback for large objects: the calling thread has allocated one.
void cs_events_take_large(uint64_t object, uint64_t class);

// ---- The agent's thread ----
// Has the runtime deliver the events that the modes need, if any, each on the thread that it
// happens to. Before the first sample. Returns false if the runtime refuses; *err says why.
bool cs_events_start(struct cs_error *err);
// Takes samples of the waits that have not ended; before cs_events_stop.
void cs_events_end_waits(void);
void cs_events_stop(void);  // a callback that is under way ends before cs_epoch_wait returns
void cs_events_free(void);  // no callback is left

// ---- gc mode; the runtime's callbacks, of one thread at a time ----
// A suspension begins: what a nanosecond of the pause will stand for (32.32; 0: nothing, it is not
// to be walked). All threads have stopped: what samples of those that have held it up stand for.
uint64_t cs_events_begin_way(void);
void cs_events_end_way(uint64_t weight);
