// SPDX-License-Identifier: MIT
// The use of perf events that the agent and the command share: what can be counted for a thread,
// and why a count is refused. Not for handlers.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct perf_event_attr;

// What can be counted. Kind 0 is CPU time; any of the others may be sampled instead.
struct cs_perf_kind {
  const char *name;   // perf's name: "page-faults"
  const char *words;  // "page faults"
  uint32_t type;
  uint64_t config;
  uint64_t period;  // default sampling period
};
enum { CS_PERF_KINDS = 14 };
// Returns NULL if there is no such kind.
const struct cs_perf_kind *cs_perf_kind(uint32_t number);
// Returns the number of the kind with that name, or 0.
uint32_t cs_perf_kind_by_name(const char *name, size_t len);

// Fills in the attributes of a sampling event that is not enabled yet. `kernel`: it also counts
// while the thread is in the kernel.
void cs_perf_attr(struct perf_event_attr *attr, uint32_t kind, uint64_t period, bool kernel);
// Opens an event for one thread of this process (0: the calling thread). Returns the descriptor, or
// -1 with errno set.
int cs_perf_open(const struct perf_event_attr *attr, pid_t tid);
// Explains why perf_event_open failed with `error`, and what to permit. Returns false.
bool cs_perf_refused(int error, uint32_t kind, bool kernel, struct cs_error *why);
// Returns whether the calling process may open such an event; if not, `why` receives the reason.
bool cs_perf_probe(uint32_t kind, bool kernel, struct cs_error *why);
// Returns kernel.perf_event_max_sample_rate, the highest number of samples per second that the
// kernel allows an event, or 0 if it is not known.
uint32_t cs_perf_most_hz(void);
// Returns how many frames of a call chain the kernel records (kernel.perf_event_max_stack), but at
// most `most`.
uint16_t cs_perf_most_frames(uint16_t most);
