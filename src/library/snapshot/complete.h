// SPDX-License-Identifier: MIT
// complete: what a fast walk has left open. Async-signal-safe.
#ifndef CS_SNAPSHOT_COMPLETE_H
#define CS_SNAPSHOT_COMPLETE_H

#include "signal/request.h"

// Looks up method starts, functions from code headers, and what of the functions is known already.
void cs_capture_complete(struct cs_capture *capture);

#endif
