// SPDX-License-Identifier: MIT
// own_tid: the calling thread's id, without a system call where that is possible.
// Async-signal-safe, except for cs_own_tid_init.
#pragma once

#include <stdint.h>

// Searches for the C library's own note of it. Starts a thread, and waits for it. Called at the
// library's start.
void cs_own_tid_init(void);
uint32_t cs_own_tid(void);
