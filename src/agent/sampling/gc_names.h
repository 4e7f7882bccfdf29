// SPDX-License-Identifier: MIT
// The words for a pause: which collection it was for, and why. Any thread.
#ifndef CS_SAMPLING_GC_NAMES_H
#define CS_SAMPLING_GC_NAMES_H

#include <stddef.h>
#include <stdint.h>

// Generation, reason and type of a GCStart event as one number, never 0.
uint32_t cs_gc_number(uint32_t generation, uint32_t reason, uint32_t type);
// "[GC gen 1, allocation, blocking]". `collection`: the number above, or 0 for a pause in which
// none began; `suspend_reason`: of SuspendEEBegin, what it was for then.
void cs_gc_name(uint32_t collection, uint32_t suspend_reason, char *name, size_t size);

#endif
