// SPDX-License-Identifier: MIT
// What a sample stands for, of CPU time, wall time or events, and which ones were put off to spare
// their threads. The agent's thread only. Not for handlers.
#ifndef CS_SAMPLING_WEIGHT_H
#define CS_SAMPLING_WEIGHT_H

#include "sampling/threads.h"

void cs_weights_start(void);
// Once for each sample, in the order of the ring.
uint64_t cs_weight_of(const struct cs_sample *sample, enum cs_wire_mode mode);

// Mode wall. A thread has slept since its last sample, which is sent as one that counts once more.
// False: it is not on the wire, or what it says may have changed; the thread has to be walked.
bool cs_weight_repeat(struct cs_agent_thread *thread, uint64_t now_ns);
uint64_t cs_weight_uncovered_ns(void);  // time of threads that no sample stands for
uint64_t cs_weight_lost_repeats(void);  // for want of room in the wire
// Notes whether the thread's handler has put off a sample since the last look. The time that it
// would have stood for is part of the thread's next sample by signal.
void cs_weight_note_put_off(struct cs_agent_thread *thread, uint64_t now_ns);
// The handler would put off this sample, so no signal is sent.
void cs_weight_put_off(struct cs_agent_thread *thread, uint64_t now_ns);
bool cs_weight_report_put_off(void);  // CS_WIRE_PUT_OFF, if there were any. False: no room

// Nanoseconds since the recording began.
static inline uint64_t cs_since_start(uint64_t now_ns) {
  return now_ns > cs_agent.start_ns ? now_ns - cs_agent.start_ns : 0;
}

#endif
