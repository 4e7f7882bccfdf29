// SPDX-License-Identifier: MIT
// sampled: where the walk of a sample begins. Signal-safe: yes.
#pragma once

#include "signal/thread.h"

struct cs_sampled {
  const struct cs_world *world;
  const struct cs_thread *thread;
  void *agent;  // struct cs_thread.agent
  const struct cs_regs *regs;
  const struct cs_stack *stack;
  uint64_t limit_ns;  // of the walk's CPU time, which is the calling thread's; 0: none
  bool kernel;        // the thread's perf event, which has a ring, asked for the sample
  bool at_work;       // the calling thread works for managed code: if it is in cooperative mode,
                      // the runtime is not suspended
  bool copied;        // the stack and the registers are a copy, which was taken after
  uint32_t stops;     // struct cs_awaits.stops was this; a collection has not updated the copy
};
