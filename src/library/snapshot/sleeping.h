// SPDX-License-Identifier: MIT
// sleeping: requests for threads that are blocked in the kernel, which are walked without a signal.
// Any thread; not for handlers.
#pragma once

#include "signal/request.h"

// Walks the pinned thread into the request's capture, with a few tries. False: it has to be asked
// by signal. Not inside the epoch.
// `runs`: its run count before; 0: it was not read.
bool cs_asleep_walk(struct cs_request *request, struct cs_thread *thread, uint64_t runs);
// If the thread has not run since the last capture that was kept of it, hands that one out again,
// resolved, for the price of reading one file; with CS_REQUEST_LOGICAL perhaps as request->told
// alone. False: it has to be walked. *runs: its run count, if that was read.
bool cs_asleep_recall(struct cs_request *request, const struct cs_thread *thread, uint32_t flags,
                      uint64_t *runs);
// After cs_asleep_walk, when the capture has been resolved: keeps it for that. `thread` is pinned.
void cs_asleep_keep(const struct cs_request *request, const struct cs_thread *thread);
