// SPDX-License-Identifier: MIT
// A program that is recorded from its start waits until the recording has begun, before the first
// of its own modules is used. Not for handlers.
#ifndef CS_AGENT_PROGRAM_START_H
#define CS_AGENT_PROGRAM_START_H

#include <stdbool.h>

// Before the agent's thread exists: is the program to wait?
void cs_program_start_prepare(bool wait);
// The recording has begun, or there will be none: the program goes on. Says how much of it has been
// missed, if any. The agent's thread.
void cs_program_start_allow(bool begun);
// A module has been loaded: ModuleLoadFinished, on any thread.
void cs_program_start_await(void);

#endif
