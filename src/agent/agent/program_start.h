// SPDX-License-Identifier: MIT
// A program that is recorded from its start waits until the recording has begun, before the first
// of its own modules is used. Not for handlers.
#pragma once

#include <stdbool.h>

// Called before the agent's thread exists. `wait`: whether the program is to wait.
void cs_program_start_prepare(bool wait);
// Lets the program run on: the recording has begun, or there will be none. Reports how much of the
// program has been missed, if any. The agent's thread.
void cs_program_start_allow(bool begun);
// Called when a module has been loaded (ModuleLoadFinished), on the thread that has loaded it.
void cs_program_start_await(void);
