// SPDX-License-Identifier: MIT
// native_stack: the stacks of threads that other code has made. Not for handlers.
#pragma once

#include "signal/thread.h"

// For a thread that existed before the library, or that the runtime does not know: finds the bounds
// of its stack, and whether that has room for a signal. Finds nothing if the thread was not made by
// the C library.
void cs_thread_learn_stack(struct cs_thread *entry, uint32_t tid);
