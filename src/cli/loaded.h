// SPDX-License-Identifier: MIT
// Is a module's file the one that a process has loaded, or has another taken its place? One thread.
#ifndef CS_LOADED_H
#define CS_LOADED_H

#include <sys/types.h>

#include "cli/recording.h"

// Before when the process has loaded nothing, by the clock that files have their times from; 0: not
// known. `is_ours`: the number is good in our namespace; else it is only the agent's own word, and
// nothing that we have started is older than when we opened the session.
uint64_t cs_loaded_since(pid_t pid, bool is_ours, uint64_t opened_ns);

// Notes for the recording which file the path of a function's module means, or that it cannot be
// believed, when a module is met first. `since_ns`: when nothing was loaded yet.
void cs_loaded_note(struct cs_recording *rec, uint32_t function, pid_t pid, uint64_t since_ns);

#endif
