// SPDX-License-Identifier: MIT
// The name of a pause: which collection it was for, and why. Any thread. Not for handlers.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Generation, reason and type of a GCStart event as one number, never 0.
uint32_t cs_gc_number(uint32_t generation, uint32_t reason, uint32_t type);
// "[GC gen 1, allocation, blocking]". `collection`: such a number, or 0 for a pause in which no
// collection began; that one is named by the reason of its SuspendEEBegin event.
void cs_gc_name(uint32_t collection, uint32_t suspend_reason, char *name, size_t size);
