// SPDX-License-Identifier: MIT
// round: a caller that walks all threads in turn, again and again, between a SuspendRuntime and a
// ResumeRuntime that stop nothing. The threads that it had to ask by signal in its last round are
// asked together at the first walk of the next one, and their walks are there when they are wanted. Not
// for handlers.
#ifndef CS_SNAPSHOT_ROUND_H
#define CS_SNAPSHOT_ROUND_H

#include "signal/request.h"

// One round at a time. Between the two no walk that was asked ahead is older than the first.
void cs_round_begin(void);
void cs_round_end(void);
// The slot with the walk of the pinned `thread` that was asked ahead in this round, complete down to
// the stack's base. NULL: there is none, or code has died since. `flags`: CS_REQUEST_*.
struct cs_request *cs_round_take(struct cs_thread *thread, uint32_t flags);
// The thread had to be asked by signal: the next round asks it ahead.
void cs_round_note(struct cs_thread *thread, uint32_t flags);

#endif
