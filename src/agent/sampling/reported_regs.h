// SPDX-License-Identifier: MIT
// The registers of threads that sleep where /proc shows too few registers for a walk to the stack's
// base: in native code that finds its caller by the frame pointer, with no managed code above it.
// Such a thread is sent one signal, whose handler reports its registers, and is walked by these as
// long as it sleeps there. The agent's thread only. Not for handlers.
#pragma once

#include "state/threads.h"

// Adds to the `regs` of a sleeping thread those that it has reported in the same place. Returns
// false if there are none.
bool cs_reported_regs_use(const struct cs_pinned *thread, struct cs_regs *regs);
// Returns, after a walk by them, whether they belong to this stack. If not, they are not used
// again.
bool cs_reported_regs_fit(const struct cs_pinned *thread, const struct cs_sample *sample);
// Asks the thread to report its registers, after a walk that ended for the reason `stop`. Returns
// false if that would not help, or if the thread cannot be asked, or was asked not long ago.
bool cs_reported_regs_ask(const struct cs_pinned *thread, enum cs_stop stop);
// Returns whether the thread may be asked now.
bool cs_reported_regs_may_ask(const struct cs_pinned *thread);
