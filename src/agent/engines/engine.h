// SPDX-License-Identifier: MIT
// Engines: what makes threads take samples of cpu mode. engines.h chooses among them. Not for
// handlers.
#pragma once

#include "base/clock.h"
#include "state/threads.h"

struct cs_engine {
  enum cs_wire_engine_kind kind;
  // Returns what the engine does not see, as a sentence, valid until the recording ends. NULL: it
  // sees everything.
  const char *(*unseen)(void);
  // Called once per recording, before the first thread is started, on any thread, with the list's
  // lock held or no other thread in the list. Returns false if the engine is not available in this
  // process; *why says why, and what to allow. NULL: it always is.
  bool (*begin)(struct cs_error *why);
  // Called when the last thread has been stopped, on the agent's thread. NULL: nothing to do.
  void (*end)(void);
  // Starts the engine for one thread, with the list's lock held; no call into the CLR. Returns
  // false if the engine is not available for this thread; *why says why, or is empty if the thread
  // has ended.
  bool (*start)(struct cs_agent_thread *thread, struct cs_error *why);
  void (*stop)(struct cs_agent_thread *thread);
  // Called when cs_agent.period_ns has changed. NULL: nothing to do.
  void (*change)(struct cs_agent_thread *thread);
  // Returns the CPU time that a sample stands for at present. The agent's thread. NULL:
  // cs_agent.period_ns.
  uint64_t (*interval)(void);
  // Returns the CPU time of the thread that no sample stands for yet. With `take`, its next sample
  // does not stand for that any more. With the list's lock held. The agent's thread.
  uint64_t (*overdue)(struct cs_agent_thread *thread, bool take);
  // Called by the agent's thread at least every 100 ms. *next_ns: when (CLOCK_MONOTONIC) to call it
  // again at the latest; the caller sets UINT64_MAX (any time). Returns false if the engine is no
  // longer available; *why says why. NULL: nothing to do.
  bool (*poll)(const struct cs_engine *self, uint64_t now_ns, uint64_t *next_ns,
               struct cs_error *why);
};

extern const struct cs_engine cs_engine_perf;       // engine_perf.c
extern const struct cs_engine cs_engine_perf_user;  // the same, in user mode only
extern const struct cs_engine cs_engine_clock;      // engine_clock.c

// Counts a sample of which it is not known whether its thread was in the kernel (engine_perf.c).
void cs_perf_count_kernel_unknown(void);
