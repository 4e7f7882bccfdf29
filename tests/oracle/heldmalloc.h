// SPDX-License-Identifier: MIT
// An allocator that a test can make one thread stand inside of, with the allocator's lock owned.
// Preloaded, so that its malloc is everybody's.
#ifndef ORACLE_HELDMALLOC_H
#define ORACLE_HELDMALLOC_H

#include <stdint.h>

// The calling thread allocates and frees until held_malloc_stop; it is the one that stands inside.
void held_malloc_target(void);
void held_malloc_stop(void);
// From now on every allocation in the process takes one lock. Returns when the target owns it and
// is inside malloc, where it stays until held_malloc_leave, or for `at_most_ms` (0: forever).
void held_malloc_enter(uint32_t at_most_ms);
// Lets the target out as soon as it runs. Waits for nothing, calls nothing.
void held_malloc_leave(void);
// Waits until it is out, and takes the one lock away.
void held_malloc_finish(void);

#endif
