// SPDX-License-Identifier: MIT
// Which of the runtime's events are walked. Not for handlers.
#ifndef CS_STATE_GATE_H
#define CS_STATE_GATE_H

#include "state/state.h"

// ---- Any thread ----
// Counts an event of `value`, in its mode's unit. Returns false if it is not to be walked. *weight:
// what it stands for if it is.
bool cs_gate_take(enum cs_wire_mode mode, uint64_t value, uint64_t *weight);
// The same in two steps, for an event whose value is known only after it has been walked. Draws
// what one of its mode's unit stands for (32.32; 0: it is not to be walked); counts the event.
uint64_t cs_gate_draw(enum cs_wire_mode mode);
void cs_gate_count(enum cs_wire_mode mode, uint64_t value);
void cs_gate_add_walk(enum cs_wire_mode mode);
void cs_gate_add_cost(enum cs_wire_mode mode, uint64_t ticks);  // of the time-stamp counter

// ---- The agent's thread ----
void cs_gate_start(uint64_t now_ns);
void cs_gate_update(uint64_t now_ns);  // decides anew how many events are walked; now and then
// The budget: the part of a processor that the walks of a mode's events may take.
void cs_gate_set_share(enum cs_wire_mode mode, double share);
// What a sample costs in the command, in nanoseconds.
void cs_gate_set_command_cost(double ns);
// The part of a processor that a mode's walks take, and that they would take without a budget.
double cs_gate_used(enum cs_wire_mode mode);
double cs_gate_demand(enum cs_wire_mode mode);
bool cs_gate_report(void);  // CS_WIRE_EVENTS for each mode. False: no room

#endif
