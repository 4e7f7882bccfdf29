// SPDX-License-Identifier: MIT
// threads: the component's state, and the threads that existed before the library. Not for
// handlers.
#pragma once

#include "clrsnap/clrsnap.h"

// Written at a start of the library, under its lock, before any thread is asked; after that read by
// any thread that asks one.
struct cs_threads {
  int signal_number;           // the real-time signal that is ours (own_signal.c)
  uint32_t max_depth;          // of struct clrsnap_opts, with the defaults filled in,
  uint32_t answer_timeout_ms;  // as are these two
  uint32_t hold_timeout_ms;
};
extern struct cs_threads cs_threads;

// Registers the threads that the runtime knows already, after an attach.
void cs_registry_adopt(ICorProfilerInfo15 *info);
// Forgets the threads of an earlier start that the runtime no longer knows.
void cs_registry_forget_ended(ICorProfilerInfo15 *info);
// Frees what is kept of living threads for speed, when the library is no longer used.
void cs_registry_rest(void);
