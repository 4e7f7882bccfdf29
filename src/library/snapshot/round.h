// SPDX-License-Identifier: MIT
// round: walks of a round over many threads, between a SuspendRuntime and a ResumeRuntime that stop
// nothing. The threads that run are asked together, at the first walk of the round. Not for
// handlers.
#pragma once

#include "signal/request.h"

// Begins a round, or ends it. Asks nobody: that costs nothing to a caller that walks nothing.
void cs_round_begin(void);
void cs_round_end(void);

// A request that was asked ahead, and is the caller's now.
struct cs_ahead {
  struct cs_request *request;
  uint64_t asked;
};
// If this is the first walk of the round, asks all threads that run and that the caller probably
// wants. Returns whether the pinned `thread` has been asked: then the request is to be waited for,
// and released, or given back. A walk is handed out once; `flags`: CS_REQUEST_*.
bool cs_round_take(struct cs_thread *thread, uint32_t flags, struct cs_ahead *ahead);
// Returns whether the answered request has a whole walk, and no code has died since.
bool cs_round_is_good(const struct cs_request *request);
// Gives back a request that has not been answered so far.
void cs_round_give_back(struct cs_thread *thread, const struct cs_ahead *ahead);
// Notes that the pinned thread had to be asked alone: it will be asked ahead in the next round.
void cs_round_note(struct cs_thread *thread, uint32_t flags);
