// SPDX-License-Identifier: MIT
// Asks threads for samples, by signal. The agent's thread only, except where stated. Not for
// handlers.
#pragma once

#include "state/threads.h"

// Returns whether the thread blocks the signal that asks for samples, as far as that was seen
// lately (t->blocks). Such a thread must not be asked: it may wait for signals with sigwait or
// signalfd, and would be given ours. Reads its mask now and then (0.06 ms).
bool cs_ask_is_blocked(struct cs_agent_thread *t);
bool cs_ask_is_blocked_now(struct cs_agent_thread *t);  // reads it in any case
// The bit of that signal in a mask.
uint64_t cs_ask_signal_bit(void);

// Asks the thread, which is pinned or in the locked list, for a sample. `weight`: what it stands
// for (CS_ASKED_SCAN). Returns false if it is not asked, for example because an earlier request of
// the same kind is still pending.
bool cs_ask_sample(struct cs_agent_thread *thread, struct cs_thread *entry, enum cs_asked what,
                   uint64_t weight);
// Returns whether the thread may be sent a signal that asks for its registers (CS_ASKED_REGS).
bool cs_ask_may_report(const struct cs_thread *entry);
// Asks a thread of the locked list, which holds up a suspension, for a sample. `type`: what the
// sample is about. The watching thread of agent/stragglers.c only.
void cs_ask_straggler(struct cs_agent_thread *thread, uint32_t type);
void cs_asks_begin(void);
void cs_asks_check(uint64_t now_ns);             // now and then: checks whether SIGURG is still
                                                 // ours
void cs_asks_count_unanswered(uint64_t now_ns);  // at the end, before threads are forgotten
void cs_asks_end(void);                          // from then on, no thread is asked
// Returns how long, in us, a quarter of the threads ran on at least until they took the signals
// that asked for samples; 0: too short to matter, or not known yet.
double cs_ask_ran_on_us(void);
void cs_ask_forget_ran_on(void);  // of the signals up to now
// Writes a sentence on how long threads ran on until they took the signals that asked for samples.
// Returns false, and writes an empty one, if that was too short to matter, or is not known yet.
enum { CS_RAN_ON_BYTES = 200 };
bool cs_ask_ran_on(char *text, size_t size);
bool cs_asks_report(void);  // sends CS_WIRE_LOST_SIGNALS if any failed; false: no room
