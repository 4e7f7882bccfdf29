// SPDX-License-Identifier: MIT
// suspension: a suspension of the runtime that waits for threads in cooperative mode, and how much
// of it samples of those threads account for. Signal-safe: yes.
#pragma once

#include "walk/walk.h"

// Written by the thread that suspends, except where handlers are mentioned. Times are values of the
// time-stamp counter.
struct cs_suspension {
  // Atomic.
  uint64_t begun;      // 0: none is under way, or it is not sampled
  uint64_t accounted;  // up to when samples account for it; 0: as `begun`. Handlers write it, too
  uint64_t weights;    // of these samples, added up by handlers
  uint64_t held_ns;    // what these samples have cost. Handlers add to it
  uint64_t weight;     // of a nanosecond, 32.32
  uint32_t mode;       // of these samples, as the agent numbers it
  uint32_t suspender;  // the tid of the thread that suspends
};

// Returns whether the suspension waits for the calling thread. If so, it does until the handler
// returns, at least, because the thread stays in cooperative mode.
CS_ISLAND bool cs_suspension_waits_for(const struct cs_suspension *suspension,
                                       const struct cs_world *world, uint32_t tid,
                                       uint64_t clr_thread);
// Returns the weight of the time up to `tsc` for which no sample accounts, and which the caller's
// sample accounts for from now on. 0: there is none.
CS_ISLAND uint64_t cs_suspension_account(struct cs_suspension *suspension, uint64_t tsc,
                                         uint64_t ns_of_tick);
