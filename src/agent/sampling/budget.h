// SPDX-License-Identifier: MIT
// Lowers the rates of samples to what the budget allows. The agent's thread only. Not for handlers.
#pragma once

#include <stdbool.h>
#include <stdint.h>

void cs_budget_start(uint64_t now_ns);    // after cs_throttle_start
void cs_budget_add_held(uint64_t ticks);  // of the time-stamp counter, spent in a handler
void cs_budget_update(uint64_t now_ns);   // right after the ring has been read
bool cs_budget_report(uint64_t now_ns);   // CS_WIRE_BUDGET, if there is one; false: no room
