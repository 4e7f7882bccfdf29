// SPDX-License-Identifier: MIT
// The engine of a recording: the best one that is available, or the one that was requested. A
// thread for which it is not available gets the next best one. Not for handlers.
#pragma once

#include "engines/engine.h"

// ---- A recording; the agent's thread ----
bool cs_engines_begin(struct cs_error *err);  // false: the requested one is not available
// Polls the engines. Returns when (CLOCK_MONOTONIC) to call it again at the latest.
uint64_t cs_engines_poll(uint64_t now_ns);
bool cs_engines_have_events(void);  // threads may have perf events, whose signal is to be watched
void cs_engines_end(void);          // when no thread is sampled any more
bool cs_engines_report(void);       // sends CS_WIRE_ENGINE in cpu mode; false: no room
// Changes the time between samples of all present and future threads.
void cs_engines_set_period(uint64_t period_ns);

// Adds CPU time of threads that could have no engine yet, with the list's lock held.
void cs_engines_add_cpu(uint64_t ns);

// ---- One thread, with the list's lock held ----
void cs_engine_start(struct cs_agent_thread *thread);
void cs_engine_stop(struct cs_agent_thread *thread);  // does nothing if it has none
