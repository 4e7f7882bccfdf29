// SPDX-License-Identifier: MIT
// sleeping: requests for threads that are blocked in the kernel, which are walked without a signal.
// Any thread; not for handlers.
#ifndef CS_SNAPSHOT_SLEEPING_H
#define CS_SNAPSHOT_SLEEPING_H

#include "signal/request.h"

// Walks the pinned thread into the request's capture, with a few tries. False: it has to be asked
// by signal. Not inside the epoch.
bool cs_asleep_walk(struct cs_request *request, struct cs_thread *thread);
// If the thread has not run since the last capture that was kept of it, hands that one out again,
// resolved, for the price of reading one file. False: it has to be walked.
bool cs_asleep_recall(struct cs_request *request, const struct cs_thread *thread);
// After cs_asleep_walk, when the capture has been resolved: keeps it for that. `thread` is pinned.
void cs_asleep_keep(const struct cs_request *request, const struct cs_thread *thread);

#endif
