// SPDX-License-Identifier: MIT
// gc mode: which threads hold up a suspension of the runtime, and why. Each is asked for samples,
// whose weights are parts of the time that the suspension takes. Not for handlers.
#pragma once

#include <stdint.h>

// Both are called by the agent's thread: the first when there is a ring (without gc mode it does
// nothing), the second when no samples are taken any more; it waits for the watching thread.
void cs_stragglers_begin(void);
void cs_stragglers_end(void);

// The runtime's callbacks, of one thread at a time.
void cs_stragglers_suspending(uint32_t reason);  // COR_PRF_SUSPEND_REASON: RuntimeSuspendStarted
void cs_stragglers_suspended(void);              // RuntimeSuspendFinished, RuntimeSuspendAborted
