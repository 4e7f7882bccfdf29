// SPDX-License-Identifier: MIT
// The registers of threads that sleep where /proc shows too few of them for a walk to the stack's
// base: below native code that finds its caller by the frame pointer, and without managed code above that. Such a
// thread is asked once, by a signal, and walked by what it has shown as long as it sleeps there. The
// agent's thread only. Not for handlers.
#ifndef CS_SAMPLING_SHOWN_REGS_H
#define CS_SAMPLING_SHOWN_REGS_H

#include "state/threads.h"

// Adds to the `regs` of a thread that sleeps the ones that it has shown in the same place. False:
// there are none.
bool cs_shown_regs_use(const struct cs_pinned *thread, struct cs_regs *regs);
// After a walk by them. False: they are not the ones of this stack, and will not be used again.
bool cs_shown_regs_fit(const struct cs_pinned *thread, const struct cs_sample *sample);
// Asks the thread to show them, after a walk that ended for the reason `stop`. False: that would not
// help, it cannot be asked, or has been asked too often or in vain.
bool cs_shown_regs_ask(const struct cs_pinned *thread, enum cs_stop stop);
bool cs_shown_regs_may_ask(const struct cs_pinned *thread);

#endif
