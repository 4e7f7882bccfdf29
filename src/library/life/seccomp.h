// SPDX-License-Identifier: MIT
// System calls for which the process's seccomp filter would kill it: a filter may end the process,
// a thread or the call. Not for handlers.
#pragma once

#include <stdbool.h>

#include "base/error.h"

// Calls that clrsnap makes and a .NET program does not need otherwise.
enum cs_probed_call {
  CS_CALL_READ,     // process_vm_readv
  CS_CALL_SIGNAL,   // rt_tgsigqueueinfo
  CS_CALL_SETATTR,  // sched_setattr
  CS_CALL_PERF,     // perf_event_open
  CS_PROBED_CALLS
};

// Finds out which calls kill, in a child process, which has the same filter. Before the first of
// these calls. Returns false if one without which nothing works kills, or no child can be made.
// Costs a read of a file where there is no filter.
bool cs_seccomp_probe(struct cs_error *err);
// Returns whether the filter lets a call return, by the last probe. Any thread.
bool cs_seccomp_survives(enum cs_probed_call call);
