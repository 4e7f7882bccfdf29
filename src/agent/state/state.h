// SPDX-License-Identifier: MIT
// What all parts of the agent share: the options of the recording, its state, its ring and its
// wire. Not for handlers, which reach the ring through cs_signal.
//
// Threads: callbacks come on the runtime's threads, several at a time. A single thread of ours,
// ".clrsnap" (the agent's thread), asks the CLR for names, reads the ring and writes to the wire.
// It holds no lock while it calls the CLR (contract: C19), and a callback waits for it only for a
// bounded time. Another one, ".clrsnap-gc", only watches suspensions (agent/stragglers.h).
#pragma once

#include "clr/clr.h"
#include "state/ring.h"
#include "wire/producer.h"

// PASSIVE -> WAITING -> RECORDING -> OVER -> PASSIVE, once for each recording that is attached. A
// process that ends while it is being recorded stays OVER.
enum cs_agent_state {
  CS_AGENT_PASSIVE,    // loaded, no recording
  CS_AGENT_WAITING,    // until the runtime has run enough code for its layout to be verified
  CS_AGENT_RECORDING,  // samples are taken
  CS_AGENT_OVER,       // CS_WIRE_END has been written, or there is nothing to write to
};

// What the command asks for. Set by the thread that starts the recording, before the agent's thread
// exists and before any callback; constant until the recording is over.
struct cs_options {
  uint32_t modes;  // CS_WIRE_MODE_BITs
  uint32_t hz;
  enum cs_wire_engine_kind engine;
  bool kernel;              // record kernel frames, too
  uint32_t event;           // what to count instead of CPU time (base/perf.h); 0: nothing
  uint64_t event_period;    // of `event`, between two samples
  bool lines;               // the methods' IL maps
  bool inlined;             // the methods that were inlined into others
  bool async_callers;       // the methods that await
  uint32_t budget_ppm;      // of a processor; 0: no budget
  uint32_t event_rate;      // waits and exceptions to walk, per second and mode; 0: by their cost
  uint64_t alloc_interval;  // bytes between two allocations to walk; 0: by their cost
};
extern struct cs_options cs_options;

static inline bool cs_wants(enum cs_wire_mode mode) {
  return (cs_options.modes & CS_WIRE_MODE_BIT(mode)) != 0;
}
static inline bool cs_wants_events(void) {
  return (cs_options.modes & ~CS_WIRE_TIMED_MODES) != 0;
}

struct cs_agent {
  // Atomic, read by any thread; each is written by the one thread named.
  uint32_t state;        // enum cs_agent_state; a futex. The starting thread, then the agent's
  uint32_t wake;         // incremented to wake the agent's thread; a futex. Any thread
  uint32_t tid;          // of the agent's thread. The agent's thread
  uint32_t watcher_tid;  // of the thread that watches suspensions (agent/stragglers.h); 0: there is
                         // none. That thread, and the agent's
  uint64_t period_ns;    // between samples: 1 / hz, or more under a budget. The agent's thread
  // Set before the agent's thread exists; NULL again when it has detached.
  ICorProfilerInfo15 *info;  // our own: cs_library.info may be another profiler's
  // The agent's thread only, except `ring`, into which handlers and callbacks write.
  uint64_t start_ns;    // CLOCK_MONOTONIC, when the recording began
  uint64_t watcher_ns;  // the CPU time of the thread `watcher_tid`, once it has ended
  struct cs_producer wire;
  struct cs_sample_ring ring;
};
extern struct cs_agent cs_agent;

bool cs_agent_is_active(void);  // WAITING or RECORDING, in the process that is recorded
void cs_agent_set_state(enum cs_agent_state state);
void cs_agent_wake(void);
// Sends a record without strings. Returns false if there is no room.
bool cs_send(enum cs_wire_kind kind, const void *record, size_t size);
