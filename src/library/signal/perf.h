// SPDX-License-Identifier: MIT
// perf: samples that a thread's perf event asks for. Signal-safe: yes.
#pragma once

#include <signal.h>

#include "signal/thread.h"

// Returns the thread whose event has sent the signal, or NULL if none of ours has.
CS_ISLAND struct cs_thread *cs_perf_thread_of(const siginfo_t *info);
// Returns whether the task clock of the calling thread is due.
CS_ISLAND bool cs_perf_is_due(const struct cs_thread *thread);
// Arms the calling thread's event again; `now_ns` is its CPU clock.
CS_ISLAND void cs_perf_rearm(struct cs_thread *thread, uint64_t now_ns);
// Returns how long a task clock is to wait for its next sample, in ns of CPU time.
CS_ISLAND uint64_t cs_perf_wait(struct cs_perf_event *event, uint64_t now_ns, uint64_t period_ns,
                                uint64_t least_ns);
