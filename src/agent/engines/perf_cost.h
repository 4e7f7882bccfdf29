// SPDX-License-Identifier: MIT
// What the engine perf costs a program whose threads switch often.
#ifndef CS_ENGINES_PERF_COST_H
#define CS_ENGINES_PERF_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cs_perf_use {  // of the program, since it began
  uint64_t switches;  // how often its threads have lost a processor
  uint64_t cpu_ns;
};

// Is that too much for the program as it was between the two? Then *why says how much.
bool cs_perf_costs_too_much(uint64_t switch_ns, struct cs_perf_use from, struct cs_perf_use to,
                            struct cs_error *why);

// By how much a task clock of the calling thread lengthens the time in which that thread loses and
// gets a processor, in ns; 0: not at all, or there is no task clock. Takes about 8 ms.
uint64_t cs_perf_switch_ns(void);

// A recording begins: measures, and judges by what the program has done up to now. Each second of
// it after that: has it been bearable lately? False: *why says why not.
bool cs_perf_cost_begin(struct cs_error *why);
bool cs_perf_cost_check(struct cs_error *why);

#endif
