// SPDX-License-Identifier: MIT
// The runtime first loads System.Private.CoreLib, and then, on the thread that is to run Main, the
// program's own module; until then, only the runtime runs. So the thread that has loaded the second
// module waits in that callback, where it is in preemptive mode and holds no lock that the agent's
// thread needs. The agent's thread is ready after some milliseconds, if it gets a processor.
//
// Invariant: the wait is bounded, since a program that starts late is better than one that hangs.
// After it, the program runs on, and the summary says how much of the program is missing. Threads:
// as stated in the header. Signal-safe: no.
#include "agent/program_start.h"

#include <stdio.h>

#include "base/futex.h"
#include "base/log.h"
#include "state/state.h"

#define PATIENCE_NS 3000000000ull

// Atomic.
static uint32_t waits;    // 1: the program is to wait; a futex
static uint32_t modules;  // modules that have been loaded
static uint64_t left_ns;  // CLOCK_MONOTONIC, when a thread's wait timed out; 0: none did

void cs_program_start_prepare(bool wait) {
  modules = 0;
  left_ns = 0;
  cs_store_release(&waits, wait ? 1u : 0u);
}

void cs_program_start_await(void) {
  if (cs_load_acquire(&waits) == 0 || !cs_agent_is_active()) return;
  if (cs_add_seq(&modules, 1) == 0) return;  // System.Private.CoreLib
  uint64_t begun = cs_clock_now_ns(), until = begun + PATIENCE_NS;
  while (cs_load_acquire(&waits) == 1 && cs_clock_now_ns() < until)
    cs_futex_wait_until(&waits, 1, until);
  cs_log("the program has waited %.1f ms for the recording",
         (double)(cs_clock_now_ns() - begun) / 1e6);
  if (cs_load_acquire(&waits) == 0) return;
  uint64_t none = 0;
  (void)cs_cas(&left_ns, &none, cs_clock_now_ns());
  // Other threads need not wait any longer.
  cs_store_release(&waits, 0u);
  cs_futex_wake(&waits);
}

void cs_program_start_allow(bool begun) {
  char text[160];
  cs_store_release(&waits, 0u);
  cs_futex_wake(&waits);
  uint64_t left = cs_load_acquire(&left_ns);
  if (!begun || left == 0) return;
  (void)snprintf(text, sizeof text,
                 "the first %.2f s of the program are missing: the recorder got no processor "
                 "within %.0f s",
                 (double)(cs_clock_now_ns() - left) / 1e9, PATIENCE_NS / 1e9);
  cs_producer_add_note(&cs_agent.wire, text);
}
