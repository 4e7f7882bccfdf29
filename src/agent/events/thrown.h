// SPDX-License-Identifier: MIT
// The class of an exception that is being thrown. Not for handlers.
#pragma once

#include <stdint.h>

#include "signal/thread.h"

// In the event of a throw, on the thread that throws: returns the MethodTable of the exception's
// object, or 0 if it is unknown. `thread`: the calling one; NULL: not known.
uint64_t cs_thrown_class(const struct cs_thread *thread);
