// SPDX-License-Identifier: MIT
// What the perf engine costs a program whose threads switch often.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cs_perf_use {  // of the program since it began, without the agent's thread
  uint64_t switches;  // how often its threads have lost a processor
  uint64_t cpu_ns;
};

// Called on the agent's thread.
struct cs_perf_use cs_perf_use_now(void);

// Returns whether the engine would cost the program too much, by its use from `from` to `to`; if
// so, *why says how much.
bool cs_perf_costs_too_much(uint64_t switch_ns, struct cs_perf_use from, struct cs_perf_use to,
                            struct cs_error *why);

// Returns by how many ns a task clock of the calling thread lengthens the time in which the thread
// loses and gets a processor; 0: not at all, or there is no task clock. Takes about 8 ms.
uint64_t cs_perf_switch_ns(void);

// cs_perf_cost_begin, when a recording begins, measures, and judges by the program's use: if it
// was high so far, by that of the next 100 ms, for which the call waits. cs_perf_cost_check, each
// second, judges by the use since the last call. They return false, with the reason in *why, if the
// cost is too high.
bool cs_perf_cost_begin(struct cs_error *why);
bool cs_perf_cost_check(struct cs_error *why);
