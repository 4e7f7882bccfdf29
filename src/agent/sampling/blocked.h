// SPDX-License-Identifier: MIT
// Threads that block the signal by which they are asked for samples. Their time is recorded as
// samples without a stack, with the reason CS_STOP_BLOCKED. The agent's thread only. Not for
// handlers.
#pragma once

#include "state/threads.h"

void cs_blocked_start(void);
// Called now and then: finds out which threads block their signal, and records the CPU time that
// they have used since the last call.
void cs_blocked_check(uint64_t now_ns);
// Wall mode: records the time up to now of a pinned thread that blocks its signal, and runs.
void cs_blocked_ran(struct cs_agent_thread *thread, uint64_t now_ns);
// A sample of cpu mode stands for so much, and is not sent yet. Returns how much of that is left:
// the first one after its thread has unblocked the signal does not stand for the time before.
uint64_t cs_blocked_split(struct cs_agent_thread *thread, uint64_t weight, uint64_t time_ns);
uint64_t cs_blocked_lost(enum cs_wire_mode mode);  // samples for which there was no room
void cs_blocked_report(void);                      // what no sample can say, as a note
void cs_blocked_free(void);
