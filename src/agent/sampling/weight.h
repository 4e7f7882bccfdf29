// SPDX-License-Identifier: MIT
// What a sample stands for, of CPU time, wall time or events, and which ones were put off to spare
// their threads. The agent's thread only. Not for handlers.
#pragma once

#include "state/threads.h"

void cs_weights_start(void);
// Returns the sample's weight. Called once for each sample, in the order of the ring.
uint64_t cs_weight_of(const struct cs_sample *sample, enum cs_wire_mode mode);
// Returns the wall time since the last sample of a thread that runs with its signals blocked.
uint64_t cs_weight_of_blocked(struct cs_agent_thread *thread, uint64_t now_ns);

uint64_t cs_weight_uncovered_ns(void);  // time of threads that no sample stands for
uint64_t cs_weight_lost_repeats(void);  // because there was no room in the wire
// Notes whether the thread's handler has put off a sample since the last scan. The time that it
// would have stood for is part of the thread's next sample by signal.
void cs_weight_note_put_off(const struct cs_pinned *thread, uint64_t now_ns);
// Notes that no signal is sent, because the handler would put off the sample.
void cs_weight_put_off(const struct cs_pinned *thread, uint64_t now_ns);
bool cs_weight_report_put_off(void);  // CS_WIRE_PUT_OFF, if there were any; false: no room

// Wall mode: the last sample of a thread that has not run since the last scan is repeated, at the
// cost of one compare. Begins a scan of all threads. `checks`: of single threads, per second.
void cs_repeats_begin_scan(uint64_t checks);
// Returns whether the thread has not run since its last sample, as far as its CPU clock shows. If
// so, that sample stands for the time up to now as well.
bool cs_repeats_last_sample(struct cs_agent_thread *thread, uint64_t now_ns);
// The same of a pinned thread, exactly, by its run count, which takes longer.
bool cs_repeats_for_certain(const struct cs_pinned *thread, uint64_t now_ns);
// Sends the time since that sample that has not been sent yet.
void cs_repeats_send(struct cs_agent_thread *thread);
void cs_repeats_end(void);  // the same for all threads
// Returns whether all threads that slept at the last scan, at least one, have run since.
bool cs_sleepers_have_run(void);

// Nanoseconds since the recording began.
static inline uint64_t cs_since_start(uint64_t now_ns) {
  return now_ns > cs_agent.start_ns ? now_ns - cs_agent.start_ns : 0;
}
