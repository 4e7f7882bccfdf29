// SPDX-License-Identifier: MIT
// The names of threads that the program has not named itself. Any thread. Not for handlers.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Gets the kernel's name for the thread, or "Main" for the main thread; empty if it has ended.
void cs_thread_kernel_name(uint32_t tid, char *name, size_t cap);
// `name`: what the kernel has kept of a managed thread's name. Completes it if it has been cut and
// the managed Thread object can be read.
void cs_thread_whole_name(uint64_t clr_thread, char *name, size_t cap);
