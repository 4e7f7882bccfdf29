// SPDX-License-Identifier: MIT
// throttle: which of the runtime's events are walked; those stand for the others. Not for handlers.
#pragma once

#include "state/state.h"

// ---- Any thread ----
// Counts an event of `value`, in its mode's unit. Returns false if it is not to be walked. *weight:
// what it stands for if it is.
bool cs_throttle_take(enum cs_wire_mode mode, uint64_t value, uint64_t *weight);
// Counts an event of value 1. Returns false if it is not to be walked, which it is with a
// probability of at least `least`.
bool cs_throttle_take_one(enum cs_wire_mode mode, double least);
// As cs_throttle_take in two steps, for an event whose value is known only after it has been
// walked. Draws what one of its mode's unit stands for (32.32; 0: it is not to be walked); counts
// the event.
uint64_t cs_throttle_draw(enum cs_wire_mode mode);
void cs_throttle_count(enum cs_wire_mode mode, uint64_t value);
void cs_throttle_add_walk(enum cs_wire_mode mode);
void cs_throttle_add_cost(enum cs_wire_mode mode, uint64_t ticks);  // of the time-stamp counter

// ---- The agent's thread ----
void cs_throttle_start(uint64_t now_ns);
void cs_throttle_update(uint64_t now_ns);  // decides anew, now and then, how many events are walked
// The budget: the part of a processor that the walks of a mode's events may take.
void cs_throttle_set_share(enum cs_wire_mode mode, double share);
// What a sample costs in the command, in nanoseconds.
void cs_throttle_set_command_cost(double ns);
// The part of a processor that a mode's walks take, and that they would take without a budget.
double cs_throttle_used(enum cs_wire_mode mode);
double cs_throttle_demand(enum cs_wire_mode mode);
// Sends CS_WIRE_EVENTS for each mode. Returns false if there is no room.
bool cs_throttle_report(void);
