// SPDX-License-Identifier: MIT
// install_altstacks: gives threads that existed before the library their larger alternate signal
// stacks, while the runtime runs on; or, where that is not possible (threads/activation.h), in one
// short stop of the runtime. Calls the CLR; not for handlers, nor from a callback of the runtime.
#pragma once

#include "clrsnap/clrsnap.h"
#include "signal/thread.h"

struct cs_altstacks_result {
  bool stopped;          // the runtime was stopped for it
  uint32_t given;        // threads that got theirs by this call
  uint32_t asleep;       // left to sleep in foreign code
  uint32_t unanswered;   // did not answer in time, or could not be walked to the end
  uint64_t stopping_ns;  // in SuspendRuntime, until the last thread has stopped
  uint64_t stopped_ns;   // for how long all of them were stopped, with ResumeRuntime
};
// Asks all threads that need a larger stack and are not asleep in foreign code. Returns S_OK if
// threads were asked (*result says how many), S_FALSE if there was none to ask, else the error of
// SuspendRuntime.
HRESULT cs_install_altstacks(ICorProfilerInfo15 *info, struct cs_altstacks_result *result);
// Asks threads that the caller has pinned, without a stop. Returns false if that would take a stop.
bool cs_install_altstacks_pinned(struct cs_thread *const *threads, uint32_t count);
// Returns how long to wait after the next stop: twice as long, up to a limit.
#define CS_ALTSTACKS_FIRST_GAP_NS 100000000ull
#define CS_ALTSTACKS_MOST_GAP_NS 10000000000ull
static inline uint64_t cs_altstacks_gap_after(uint64_t gap_ns) {
  return gap_ns < CS_ALTSTACKS_MOST_GAP_NS / 2 ? gap_ns * 2 : CS_ALTSTACKS_MOST_GAP_NS;
}
