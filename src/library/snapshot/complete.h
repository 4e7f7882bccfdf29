// SPDX-License-Identifier: MIT
// complete: what a fast walk has left open. Async-signal-safe.
#pragma once

#include "signal/request.h"

// Looks up method starts, functions from code headers, and what of the functions is known already.
void cs_capture_complete(struct cs_capture *capture);
