// SPDX-License-Identifier: MIT
// sleeping: requests for threads that are blocked in the kernel, which are walked without a signal.
// Any thread; not for handlers.
#pragma once

#include "signal/request.h"

// Walks the pinned thread into the request's capture, in a few tries. Returns false if the thread
// has to be asked by signal. Not inside the epoch. `runs`: its run count, if that has just been
// read; else 0.
bool cs_asleep_walk(struct cs_request *request, struct cs_thread *thread, uint64_t runs);
// If the thread has not run since the last capture that was kept of it, copies that capture,
// resolved, at the cost of reading one file; with CS_REQUEST_LOGICAL perhaps only as
// request->reported. Returns false if the thread has to be walked. Sets *runs to its run count if
// that was read.
bool cs_asleep_recall(struct cs_request *request, const struct cs_thread *thread, uint32_t flags,
                      uint64_t *runs);
// Keeps the capture for cs_asleep_recall: after cs_asleep_walk, once it has been resolved. `thread`
// is pinned.
void cs_asleep_keep(const struct cs_request *request, const struct cs_thread *thread);
