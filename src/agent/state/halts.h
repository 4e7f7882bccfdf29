// SPDX-License-Identifier: MIT
// Halts: times in which the whole process did not run, because a signal (SIGSTOP), a debugger or
// the freezer of cgroup v2 had stopped it. During a halt, no thread waits or runs. The agent's
// thread only. Not for handlers.
#pragma once

#include "base/base.h"

#define CS_HALT_LEAST_NS 100000000ull  // shorter ones are not found

// `sleepers_have_run` returns whether all threads that slept at the last scan, at least one, have
// run since. NULL: halts are not looked for.
void cs_halts_begin(bool (*sleepers_have_run)(void));
bool cs_halts_end(void);  // sends CS_WIRE_TIMES. Returns false if there is no room
// Finds out whether there was a halt since the last call. Called before and after each wait, and
// before a thread is given a time in which there may have been a halt. `due_ns`: until when this
// thread has just waited; 0: it has not.
void cs_halts_check(uint64_t due_ns);
uint64_t cs_halts_take_new(void);  // of halts found since the last call
// Returns how much of this interval was in halts.
uint64_t cs_halts_within(uint64_t from_ns, uint64_t to_ns);
