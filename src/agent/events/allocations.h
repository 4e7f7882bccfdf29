// SPDX-License-Identifier: MIT
// What an allocation that the runtime reports stands for: alloc mode. Any thread of the runtime's.
// Not for handlers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "signal/sample.h"
#include "state/event_names.h"

// Returns whether the runtime has no event that samples allocations at random (.NET 9). Its ticks
// and its callback for large objects are used instead.
bool cs_allocations_have_ticks(void);

// Each fills in the event's weight, and returns false if it is not to be walked. The first two take
// its type, too, from a payload; the third one writes its type's name, and calls the CLR.
bool cs_allocation_read_sampled(struct cs_bytes *p, struct cs_sample_event *e);
bool cs_allocation_read_tick(struct cs_bytes *p, struct cs_sample_event *e);
bool cs_allocation_read_large(uint64_t object, uint64_t class, struct cs_sample_event *e,
                              char name[CS_EVENT_NAME_BYTES]);
