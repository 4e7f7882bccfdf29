// SPDX-License-Identifier: MIT
// kernel: the kernel's part of a sample's stack. Signal-safe: yes.
#pragma once

#include "signal/thread.h"

// Copies the kernel's addresses at the last overflow of the calling thread's event, innermost first
// and at most `most`, if they belong to the stack of `regs`. Returns how many. 0: the thread was
// not in the kernel; CS_KERNEL_UNKNOWN: it is not known whether it was.
#define CS_KERNEL_UNKNOWN UINT32_MAX
CS_ISLAND uint32_t cs_kernel_stack(const struct cs_thread *thread, const struct cs_regs *regs,
                                   uint64_t *out, uint32_t most);
// Discards all records in the event's ring.
CS_ISLAND void cs_kernel_forget(const struct cs_perf_event *event);
