// SPDX-License-Identifier: MIT
// Wall mode: in every period, a sample of each managed thread, whether it runs or waits. The
// agent's thread only, except for the callbacks. Not for handlers.
#pragma once

#include "state/threads.h"
#include "threads/asleep.h"

// Samples part `part` of `parts` of the threads.
void cs_wall_tick(uint64_t now_ns, uint32_t part, uint32_t parts);
size_t cs_wall_threads(void);  // at the last scan
// Takes an event's sample of a thread that waits, if it still does.
void cs_wall_walk_waiting(const struct cs_pinned *thread, const struct cs_sample_event *event);
// Takes a sample of a sleeping thread because it holds a lock. Returns CS_ASLEEP_YES if the sample
// was taken, lost, or counted as released.
enum cs_asleep_answer cs_wall_walk_holder(const struct cs_pinned *thread,
                                          const struct cs_hold *hold);
void cs_wall_free(void);

// The runtime's callbacks, of one thread at a time.
void cs_wall_suspending(uint32_t reason);  // COR_PRF_SUSPEND_REASON: RuntimeSuspendStarted
void cs_wall_resumed(void);                // RuntimeResumeFinished, RuntimeSuspendAborted
