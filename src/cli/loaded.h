// SPDX-License-Identifier: MIT
// Is a module's file the one that a process has loaded, or has another taken its place? One thread.
#ifndef CS_LOADED_H
#define CS_LOADED_H

#include <sys/types.h>

#include "cli/recording.h"

// When the process was started, by the clock that files have their times from; 0: not known.
uint64_t cs_process_start_ns(pid_t pid);

// Notes for the recording which file the path of a function's module means, or that it cannot be
// believed, when a module is met first. `since_ns`: when nothing was loaded yet.
void cs_loaded_note(struct cs_recording *rec, uint32_t function, pid_t pid, uint64_t since_ns);

#endif
