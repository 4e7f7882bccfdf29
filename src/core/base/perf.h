// SPDX-License-Identifier: MIT
// The kernel's perf events as far as both the agent and the command need them: an event that counts
// a thread's CPU time, and why there is none. Not for handlers.
#ifndef CS_BASE_PERF_H
#define CS_BASE_PERF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct perf_event_attr;

// A task clock that samples, not enabled yet. `kernel`: it samples in the kernel, too.
void cs_perf_task_clock(struct perf_event_attr *attr, uint64_t period_ns, bool kernel);
// Opens it for one thread of this process (0: the calling one). -1: errno says why not.
int cs_perf_open(const struct perf_event_attr *attr, pid_t tid);
// Why perf_event_open has failed with that error, and what to allow. Returns false.
bool cs_perf_refused(int error, bool kernel, struct cs_error *why);
// Could the calling process have a task clock? False: *why says why not.
bool cs_perf_probe(bool kernel, struct cs_error *why);

#endif
