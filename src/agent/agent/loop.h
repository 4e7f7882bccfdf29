// SPDX-License-Identifier: MIT
// A recording, on the agent's thread. Not for handlers.
#pragma once

#include <stdbool.h>

// Called before the agent's thread exists.
void cs_loop_prepare(bool attached);
// Waits until the runtime can be walked, and records until the program, the command or an error
// ends the recording. When this returns, the last record is on the wire. The agent's thread.
// Returns false if handlers may still be writing to the ring.
bool cs_loop_run(void);
// Ends the recording soon. Any thread.
void cs_loop_stop(void);
// Returns whether the recording is ending, or its command has died. Takes 1 s at most. Any thread,
// while there is a recording.
bool cs_loop_is_abandoned(void);
// Notes that the runtime has reported ProfilerAttachComplete: all threads that begin from then on
// have a callback. Any thread.
void cs_loop_note_attached(void);
