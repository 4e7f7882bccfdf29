// SPDX-License-Identifier: MIT
// The processors that the program runs on, and on which of them the agent's thread is. The agent's
// thread only. Not for handlers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Returns the processor on which a thread runs, or last ran and is about to run again, by the text
// of its file `stat` in /proc; negative: it does neither, or its real-time scheduling is such that
// the agent's thread could never preempt it.
int cs_processor_in(const char *stat);

// Remembers on which processors the caller may run. Returns their number; 0: not known.
unsigned cs_processors_begin(void);
// Notes that so many threads of the program were found running on this processor, or on several
// processors of which this one was chosen at random. Negative: not known.
void cs_processors_add(int processor, double threads);
// Moves the caller to a processor chosen by `random` among those on which threads were found
// lately, more often to one with more of them. Returns the probability of that choice, or 0 if the
// kernel refuses, and the caller stays where it is.
double cs_processors_move(uint64_t random);
// Lets the caller run again where it could when cs_processors_begin was called.
void cs_processors_end(void);
