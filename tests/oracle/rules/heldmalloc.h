// SPDX-License-Identifier: MIT
// An allocator inside of which a test can hold one thread while that thread owns the allocator's
// lock. The library is preloaded, so that its malloc serves the whole process.
#pragma once

#include <stdint.h>

// The calling thread allocates and frees until held_malloc_stop; it is the target.
void held_malloc_target(void);
void held_malloc_stop(void);
// From now on every allocation in the process takes one lock. Returns when the target owns it and
// is inside malloc, where it stays until held_malloc_leave, or for `at_most_ms` (0: forever).
void held_malloc_enter(uint32_t at_most_ms);
// Lets the target out as soon as it runs. Does not wait and calls nothing.
void held_malloc_leave(void);
// Waits until the target is out, and removes the lock.
void held_malloc_finish(void);
