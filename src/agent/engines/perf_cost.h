// SPDX-License-Identifier: MIT
// What the engine perf costs a program whose threads switch often.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cs_perf_use {  // of the program, since it began
  uint64_t switches;  // how often its threads have lost a processor
  uint64_t cpu_ns;
};

// Returns whether that is too much for the program as it was between the two; *why then says how
// much.
bool cs_perf_costs_too_much(uint64_t switch_ns, struct cs_perf_use from, struct cs_perf_use to,
                            struct cs_error *why);

// By how much a task clock of the calling thread lengthens the time in which that thread loses and
// gets a processor, in ns; 0: not at all, or there is no task clock. Takes about 8 ms.
uint64_t cs_perf_switch_ns(void);

// Measures, when a recording begins, and judges by what the program has done up to now; after that,
// each second, by what it has done lately. Returns false, with the reason in *why, if the cost is
// too high.
bool cs_perf_cost_begin(struct cs_error *why);
bool cs_perf_cost_check(struct cs_error *why);
