// SPDX-License-Identifier: MIT
// The kernel's perf events as far as both the agent and the command need them: what can be counted
// for a thread, and why it cannot. Not for handlers.
#ifndef CS_BASE_PERF_H
#define CS_BASE_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct perf_event_attr;

// What is counted. Number 0 is CPU time; the others are what a sample may stand for in its place.
struct cs_perf_kind {
  const char *name;   // as perf has it: "page-faults"
  const char *words;  // "page faults"
  uint32_t type;
  uint64_t config;
  uint64_t period;  // between two samples, unless another one is asked for
};
enum { CS_PERF_KINDS = 14 };
// NULL: there is no such number.
const struct cs_perf_kind *cs_perf_kind(uint32_t number);
// The number of a kind by its name; 0: none has it.
uint32_t cs_perf_kind_by_name(const char *name, size_t len);

// An event that samples, not enabled yet. `kernel`: in the kernel, too.
void cs_perf_attr(struct perf_event_attr *attr, uint32_t kind, uint64_t period, bool kernel);
// Opens it for one thread of this process (0: the calling one). -1: errno says why not.
int cs_perf_open(const struct perf_event_attr *attr, pid_t tid);
// Why perf_event_open has failed with that error, and what to allow. Returns false.
bool cs_perf_refused(int error, uint32_t kind, bool kernel, struct cs_error *why);
// Could the calling process have such an event? False: *why says why not.
bool cs_perf_probe(uint32_t kind, bool kernel, struct cs_error *why);
// kernel.perf_event_max_sample_rate: the most samples a second that the kernel allows an event; 0:
// not known.
uint32_t cs_perf_most_hz(void);
// Frames of a call chain, as many as the kernel allows (kernel.perf_event_max_stack), up to `most`.
uint16_t cs_perf_most_frames(uint16_t most);

#endif
