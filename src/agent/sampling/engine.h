// SPDX-License-Identifier: MIT
// Engines: what makes threads take samples of mode cpu. Each recording has one, the best that can
// be had or the one that was asked for; a single thread that it cannot be had for gets the next
// one.
#ifndef CS_SAMPLING_ENGINE_H
#define CS_SAMPLING_ENGINE_H

#include "sampling/agent.h"

struct cs_engine {
  enum cs_wire_engine_kind kind;
  // What it does not see, as a sentence. NULL: it sees all. Valid until the recording ends.
  const char *(*unseen)(void);
  // Before the first thread: can it be had in this process? False: *why says why not and what to
  // allow. NULL: it can. Any thread, once a recording, under the lock of the list of threads or
  // before there are any.
  bool (*begin)(struct cs_error *why);
  // After the last thread has been stopped. The agent's thread. NULL: there is nothing to do.
  void (*end)(void);
  // Of one thread, under the lock of the list of threads; no call into the CLR. False: not for this
  // one, and *why says why; empty: it has ended meanwhile.
  bool (*start)(struct cs_agent_thread *thread, struct cs_error *why);
  void (*stop)(struct cs_agent_thread *thread);
  void (*change)(
      struct cs_agent_thread *thread);  // cs_agent.period_ns is another one. NULL: no need
  // A turn of the agent's loop, at least every 100 ms. Returns when (CLOCK_MONOTONIC) it is to come
  // next at the latest; UINT64_MAX: whenever. NULL: none is needed.
  uint64_t (*turn)(uint64_t now_ns);
};

extern const struct cs_engine cs_engine_perf;       // engine_perf.c: in the kernel, too
extern const struct cs_engine cs_engine_perf_user;  // and in user mode only
extern const struct cs_engine cs_engine_clock;      // engine_clock.c
extern const struct cs_engine cs_engine_timer;      // engine_timer.c

// ---- a recording, by the agent's thread ----
bool cs_engines_begin(struct cs_error *err);  // False: what was asked for cannot be had
uint64_t cs_engines_turn(uint64_t now_ns);
void cs_engines_end(void);   // no thread is sampled any more
bool cs_engines_tell(void);  // CS_WIRE_ENGINE, if there is mode cpu. False: no room
// The engine cannot be had any longer: its threads get the next one. From its turn only.
void cs_engine_abandon(const struct cs_engine *engine, const struct cs_error *why);

// ---- a thread, under the lock of the list of threads ----
void cs_engine_start(struct cs_agent_thread *thread);
void cs_engine_stop(struct cs_agent_thread *thread);
void cs_engine_change(struct cs_agent_thread *thread);

// ---- for engines ----
// A thread's CPU clock as the kernel numbers it, and what it says; 0: the thread has ended.
clockid_t cs_cpu_clock_of(uint32_t tid);
uint64_t cs_cpu_ns_of(uint32_t tid);
// A random part of the period, at least 1: when a thread's first sample is due. Were it the whole
// of it, threads that live for less than a period would never be seen, and all others too rarely.
uint64_t cs_first_of(uint64_t period_ns);
// For samples of CS_CAUSE_CLOCKED: the thread's first one is due in `first_ns` of its CPU time, a
// random part of the wait `whole_ns`, all of which it stands for. So do threads that live for less
// than that get, on average, the time that they have used, and all others that and no more. Returns
// its CPU clock now.
uint64_t cs_clocked_from_now(struct cs_agent_thread *thread, uint64_t first_ns, uint64_t whole_ns);
// engine_timer.c: what a sample of CS_CAUSE_TIMER stands for.
uint64_t cs_timer_weight(const struct cs_agent_thread *thread, const struct cs_sample *sample);

#endif
