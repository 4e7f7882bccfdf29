// SPDX-License-Identifier: MIT
// Compares the CONTEXTs that CoreCLR's own DoStackSnapshot passes with the library's, register by
// register (contract: C4). CoreCLR's own rules say what may differ, and exactly that is asserted;
// any other difference is a failure.
#pragma once

#include "stack.h"

// Finds the runtime's data contract descriptor. Called in oracle_setup.
void contexts_start(void);
// Compares two stacks of the calling thread that have equal frames. Both have just been taken, and
// no frame of them has returned since.
void contexts_compare(const char *where, const struct stack *truth, const struct stack *ours);
// Prints the table of kinds, and returns the number of unexplained differences.
uint64_t contexts_report(void);

// Whether the calling thread has an InlinedCallFrame that is in a call, with this sp and return
// address. Reads the runtime's own chain, without the library.
bool contexts_is_inlined_call(uint64_t sp, uint64_t ip);
// Whether the thread, which is held, has an exception under way: thrown, and not yet completely
// caught.
bool contexts_has_exception(ThreadID thread);
