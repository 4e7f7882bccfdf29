// SPDX-License-Identifier: MIT
// signal: what runs in the handler, and the memory that it shares with other threads.
// Signal-safe: everything marked CS_ISLAND; the rest of the component's headers is plain data.
//
// One real-time signal serves two purposes, which its value distinguishes:
//
//   purpose     sent by                             value
//   request     rt_tgsigqueueinfo                   CS_SIGVAL_REQUEST | slot | sequence
//   sample      rt_tgsigqueueinfo                   struct cs_thread *
//
// SIGURG asks for samples, too: cs_urg_handler. The runtime's own signal, with the value struct
// cs_thread *, has a thread take its larger alternate stack: cs_activation_handler.
#pragma once

#include <signal.h>

#include "signal/suspension.h"
#include "walk/walk.h"

#define CS_SIGVAL_REQUEST 1u  // lowest bit of the signal's value; a struct cs_thread * has it clear

// Counts the handlers that are walking right now. Code that is about to free what a walk may read
// makes it unreachable first, and then calls cs_epoch_wait (life/epoch.h).
struct cs_epoch {
  uint32_t active[2];  // handlers inside, by parity of `phase`
  uint32_t phase;
};
CS_ISLAND uint32_t cs_epoch_enter(struct cs_epoch *epoch);  // returns the parity to leave with
CS_ISLAND void cs_epoch_leave(struct cs_epoch *epoch, uint32_t parity);

struct cs_sample_ring;    // signal/sample.h
struct cs_awaits;         // signal/awaits.h
struct cs_handler_times;  // signal/handler_times.h

// Read by handlers, at any time. The library's start writes the clock, the pid and the limit before
// it publishes `world`; the registry of threads writes `threads_*`, under its lock; the agent's
// thread writes the rest. What a pointer points to is freed only after the pointer has been cleared
// and the epoch has passed.
struct cs_signal_state {
  struct cs_world *world;       // NULL until everything that a walk needs is ready
  struct cs_sample_ring *ring;  // NULL: samples are not being taken
  struct cs_awaits *awaits;     // NULL: awaiting methods are not looked for
  struct cs_epoch epoch;
  struct cs_suspension suspension;   // by the agent's callbacks
  uint64_t threads_lo, threads_hi;   // the registry's arena: a sample's value must point into it
  uint32_t threads_used;             // entries of it that have ever been in use
  uint64_t ticks_of_ns, ns_of_tick;  // ticks of the time-stamp counter in a nanosecond, and the
                                     // other way round; 32.32. 0: not known yet
  uint64_t request_limit_ns;         // the CPU time of a request's walk; 0: no limit
  uint32_t small_stacks;             // 1: threads may be on stacks that have no room for a signal:
                                     // none is sent, and those on their way are ignored
  uint32_t *perf_threads;  // by an event's descriptor: index + 1 of its thread's entry, or 0; or
                           // NULL
  uint64_t period;         // between two samples of an event: ns of CPU time, or a count
  uint32_t counts;         // 1: the events count something other than time
  uint32_t labels;         // the number of the recording that wants labels; 0: none does
  struct cs_handler_times *handler_times;  // for the benchmark; else NULL
  // The runtime's handler of its own signal, to which cs_activation_handler passes all but ours.
  // Set before that handler is installed.
  void (*activation)(int signo, siginfo_t *info, void *ucontext);
  int pid;  // this process; in a forked child nothing is served
};
// Hidden even where it is only declared, so that the island reaches it without a relocation table.
extern struct cs_signal_state cs_signal __attribute__((visibility("hidden")));
