// SPDX-License-Identifier: MIT
// throttle: chooses which of the runtime's events are walked; these stand for the others. Not for
// handlers.
#pragma once

#include "state/state.h"
#include "state/sums.h"

// ---- Any thread ----
// Counts an event of `value`, in its mode's unit. Returns false if it is not to be walked. *weight:
// what it stands for if it is. `sum`: of the group that its samples add up to; NULL: all events of
// the mode.
bool cs_throttle_take(enum cs_wire_mode mode, uint64_t value, struct cs_sum *sum, uint64_t *weight);
// The same for events of value 1, which it counts approximately; cs_event_name_count counts
// exactly. An event is walked with a probability of at least `least`.
bool cs_throttle_take_one(enum cs_wire_mode mode, double least);
// cs_throttle_take in two steps, for an event whose value is known only after it has been walked.
// The first returns how much a unit of the value stands for (32.32; 0: the event is not to be
// walked), the second counts the event.
uint64_t cs_throttle_draw(enum cs_wire_mode mode);
void cs_throttle_count(enum cs_wire_mode mode, uint64_t value);
void cs_throttle_add_walk(enum cs_wire_mode mode);
void cs_throttle_add_cost(enum cs_wire_mode mode, uint64_t ticks);  // of the time-stamp counter

// ---- The agent's thread ----
void cs_throttle_start(uint64_t now_ns);
void cs_throttle_update(uint64_t now_ns);  // decides again, from time to time, how many events are
                                           // walked
// Sets the part of a processor that the walks of a mode's events may take, by the budget.
void cs_throttle_set_share(enum cs_wire_mode mode, double share);
// Sets what a sample costs in the command, in nanoseconds.
void cs_throttle_set_command_cost(double ns);
// Returns the part of a processor that a mode's walks take, and that they would take without a
// budget.
double cs_throttle_used(enum cs_wire_mode mode);
double cs_throttle_demand(enum cs_wire_mode mode);
// Sends CS_WIRE_EVENTS for each mode. Returns false if there is no room.
bool cs_throttle_report(void);
