// SPDX-License-Identifier: MIT
// The CONTEXTs that CoreCLR's own DoStackSnapshot passes, compared with the library's, register by
// register (contract: C4). CoreCLR's own rules say what may differ, and exactly that is asserted;
// any other difference fails.
#ifndef ORACLE_CONTEXTS_H
#define ORACLE_CONTEXTS_H

#include "stack.h"

// Finds the runtime's data contract descriptor. In oracle_setup.
void contexts_start(void);
// Of two stacks of the calling thread, equal in frames, taken just now, nothing returned since.
void contexts_compare(const char *where, const struct stack *truth, const struct stack *ours);
// Prints the table of kinds; returns the number of differences that are not explained.
uint64_t contexts_report(void);

// Does the calling thread have an InlinedCallFrame that is in a call, with this sp and return
// address? Read from the runtime's own chain, not by the library.
bool contexts_is_inlined_call(uint64_t sp, uint64_t ip);
// Has the thread, which is held, an exception under way: thrown and not caught to the end?
bool contexts_has_exception(ThreadID thread);

#endif
